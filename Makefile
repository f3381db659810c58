# Every target does its own set-up: in a fresh clone, `make run` or `make test` may be the first command ever.
# It takes Python 3.10 or newer and Java 17 or 21; what is missing is said in one sentence.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

VENV := .venv
PY := $(VENV)/bin/python
# A stamp's name carries the checksum of what was installed: a changed lock or pyproject.toml installs anew.
# `make run` needs the package alone; all other targets need the development tools as well.
stamp-of = $(VENV)/installed-$(basename $(1))-$(shell cat $(1) pyproject.toml tools/setup.sh | cksum | cut -d ' ' -f 1)
RUN_STAMP := $(call stamp-of,requirements.lock)
STAMP := $(call stamp-of,requirements-dev.lock)

# A path is always a string, and it may hold blanks and quotes: quoted for YAML, then for the shell.
quote := '
for-yaml = '$(subst $(quote),'',$(1))'
for-shell = '$(subst $(quote),'\'',$(1))'

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) ## make .venv with the locked dependencies

$(RUN_STAMP):
	@sh tools/setup.sh $(VENV) requirements.lock
	@touch $@

$(STAMP): $(RUN_STAMP)
	@sh tools/setup.sh $(VENV) requirements-dev.lock
	@# Optional, as what follows: a command that needs a jar fetches it. With -m Python would warn that it is imported already.
	@$(PY) -c 'from storm_on_spark.spark.session.jars import main; main()' >&2 || true
	@# Without it, each start of Spark takes some seconds longer.
	@$(PY) -m storm_on_spark.spark.class_archive || true
	@# Where the environment forbids Python to keep what it compiles, each process would compile all of it again.
	@$(PY) -m compileall -qq -x '/(templates|libraries)/' storm_on_spark lab || true
	@touch $@

.PHONY: java
java:
	@python=$$(sh tools/find-python.sh) && "$$python" -I storm_on_spark/spark/session/jvm/java.py

.PHONY: run
run: java $(RUN_STAMP) ## count the words of Python's documentation, or of INPUT=path (ARGS= for more options)
	@$(VENV)/bin/storm-spark run jobs/word_count.py \
	  $(if $(value INPUT),-c $(call for-shell,word.count.input=$(call for-yaml,$(value INPUT)))) $(ARGS)

# In several processes a file stays in one, as its tests share servers, and files begin in the order of a run in one.
BY_FILE := --dist loadfile --no-loadscope-reorder
TEST := ((not integration and not spark and not slow) or representative) and not soak
REST_PROCESSES := 0

.PHONY: test
test: java $(STAMP) ## does everything work? the tests without Spark, and a part of every area with it: ten minutes
	@$(PY) -m pytest -n 2 $(BY_FILE) -m "$(TEST)" $(PYTEST_ARGS)

.PHONY: test-rest
test-rest: java $(STAMP) ## the long tail that `make test` leaves out, and property tests in their long form (REST_PROCESSES=2: two files at a time)
	@$(PY) -m pytest -n $(REST_PROCESSES) $(BY_FILE) -m "(not ($(TEST)) or hypothesis) and not soak" --hypothesis-profile=long -o testpaths=tests $(PYTEST_ARGS)

.PHONY: test-soak
test-soak: java $(STAMP) ## minutes of faults, and variants, of what shorter tests show too: an hour; CI leaves them out
	@$(PY) -m pytest -n $(REST_PROCESSES) $(BY_FILE) -m soak $(PYTEST_ARGS)

.PHONY: test-all
test-all: ## all tests, also the rest if one of `make test` fails (PYTEST_ARGS= for more options)
	@status=0; for part in test test-rest test-soak; do $(MAKE) $$part || status=1; done; exit $$status

.PHONY: test-unit
test-unit: $(STAMP) ## the tests that need no Spark
	@$(PY) -m pytest -n 2 -m "not integration and not spark" $(PYTEST_ARGS)

.PHONY: walk
walk: $(STAMP) ## print the way of one tuple through the code: file, line and purpose of each step
	@$(PY) tools/walk.py

.PHONY: lint
lint: $(STAMP) ## ruff, formatting and the direction of imports
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(VENV)/bin/lint-imports

.PHONY: format
format: $(STAMP) ## let ruff rewrite what it can
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

.PHONY: types
types: $(STAMP) ## mypy --strict
	@$(PY) -m mypy

.PHONY: bench
bench: java $(STAMP) ## measure beside Apache Storm and native PySpark: forty minutes (BENCH_ARGS= for options, --help lists them)
	@$(PY) -m lab.benchmarks $(BENCH_ARGS)

.PHONY: bench-quick
bench-quick: java $(STAMP) ## one short round of the most important cases: under five minutes
	@$(PY) -m lab.benchmarks --quick $(BENCH_ARGS)

.PHONY: bench-realtime
bench-realtime: java $(STAMP) ## one round of real time beside Storm, bytewax, native PySpark and the other profiles: twelve minutes
	@$(PY) -m lab.benchmarks --realtime $(BENCH_ARGS)

.PHONY: bench-connectors
bench-connectors: java $(STAMP) ## one round of Kafka to Delta beside native PySpark, and of Kafka beside Storm: ten minutes
	@$(PY) -m lab.benchmarks --connectors $(BENCH_ARGS)

.PHONY: pacemaker-bench
pacemaker-bench: java $(STAMP) ## load our Pacemaker, Storm's and ZooKeeper: half an hour, forty minutes at most (PACEMAKER_ARGS= for options)
	@$(PY) -m lab.benchmarks.pacemaker $(PACEMAKER_ARGS)

.PHONY: soak
soak: java $(STAMP) ## run a topology for MINUTES (60): do memory, batches and checkpoint stay as they are?
	@$(PY) -m lab.benchmarks.studies.soak --minutes $(or $(MINUTES),60) $(SOAK_ARGS)

.PHONY: faults
faults: java $(STAMP) ## inject faults into a running topology: half an hour (FAULTS_ARGS= for options, --help lists them)
	@$(PY) -m lab.faults $(FAULTS_ARGS)

.PHONY: faults-short
faults-short: java $(STAMP) ## the form of it that `make test-soak` has: a minute
	@$(PY) -m lab.faults --short $(FAULTS_ARGS)

.PHONY: connector-faults
connector-faults: java $(STAMP) ## kill brokers and drivers between Kafka and Delta: half an hour (FAULTS_ARGS= for options)
	@$(PY) -m lab.connectors $(FAULTS_ARGS)

.PHONY: failover
failover: java $(STAMP) ## kill, stop and cut off parts of a cluster: twenty minutes (FAILOVER_ARGS= for options)
	@$(PY) -m lab.failover $(FAILOVER_ARGS)

.PHONY: failover-short
failover-short: java $(STAMP) ## the form of it that `make test-rest` has: half a minute
	@$(PY) -m lab.failover --short $(FAILOVER_ARGS)

.PHONY: test-moments
test-moments: java $(STAMP) ## end a command at all of forty moments of its start, of which tests take six: ten minutes
	@MOMENTS=20 $(PY) -m pytest tests/integration/usage/test_signals.py -k any_moment $(PYTEST_ARGS)

.PHONY: fuzz
fuzz: $(STAMP) ## send mutated messages to a Pacemaker for SECONDS (600): it must not fall, swell or hang
	@$(PY) tools/fuzz_pacemaker.py --seconds $(or $(SECONDS),600) $(FUZZ_ARGS)

.PHONY: fuzz-streams
fuzz-streams: $(STAMP) ## read mutated definitions of streams and expressions for SECONDS (600): each has a meaning or an error
	@$(PY) tools/fuzz_streams.py --seconds $(or $(SECONDS),600) $(FUZZ_ARGS)

.PHONY: fuzz-coverage
fuzz-coverage: $(STAMP) ## the same guided by coverage, for SECONDS (600), of the parsers alone; fetches atheris
	@test -d build/atheris || $(PY) -m pip install -q --target build/atheris --only-binary :all: atheris==3.0.0
	@PYTHONPATH=build/atheris $(PY) tools/fuzz_coverage.py --seconds $(or $(SECONDS),600) $(FUZZ_ARGS)

.PHONY: docs
docs: $(STAMP) ## write the generated files: notebooks, names of configuration keys and their reference, conf/defaults.yaml, schema of --json, structure, suites, modules, support matrix
	@$(PY) tools/generate_config_names.py
	@$(PY) tools/generate_configuration_docs.py
	@$(PY) tools/generate_defaults.py
	@$(PY) tools/generate_json_schema.py
	@$(PY) tools/generate_notebooks.py
	@$(PY) tools/generate_structure.py
	@$(PY) tools/generate_suites.py
	@$(PY) tools/generate_streams_docs.py
	@$(PY) tools/generate_support_matrix.py

.PHONY: lock
lock: ## resolve requirements-dev.lock and requirements.lock again for every supported Python (UPGRADE=1: newest versions)
	@sh tools/lock.sh $(if $(UPGRADE),--upgrade)

.PHONY: clean
clean: ## remove .venv, caches and build output
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
