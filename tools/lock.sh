#!/bin/sh
# Writes requirements-dev.lock and the part of it that `make run` needs, requirements.lock: exact versions and hashes,
# for every supported Python. Usage: tools/lock.sh [--upgrade]
# Versions that are in the files stay unless --upgrade is given. uv is only needed here, so it lives apart.
set -eu

tool=build/lock-venv
[ -x "$tool/bin/uv" ] || { "$(sh tools/find-python.sh)" -m venv "$tool" && "$tool/bin/pip" install --quiet uv; }

lock() {
    "$tool/bin/uv" pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-annotate \
        --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" "$@"
}

lock --extra dev --extra cluster --extra delta --extra hdfs --extra kafka --extra otlp --extra rabbitmq --extra redis --extra ui \
    --output-file requirements-dev.lock "$@" pyproject.toml
# Hatchling and editables install the project itself, in editable form.
printf 'hatchling\neditables\n' |
    lock --constraint requirements-dev.lock --output-file requirements.lock "$@" pyproject.toml -
