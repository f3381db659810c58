"""Commands that ask an admin, in a shell and outside: each sends requests over a socket to the real interface."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lengths import examples
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from storm_on_spark.cli.main import main
from storm_on_spark.cli.reference.schema import schema_of
from storm_on_spark.cli.shared.groups import leaves, summary
from storm_on_spark.cli.xd.shell.commands import Shell
from storm_on_spark.cli.xd.shell.lines import split_line
from storm_on_spark.cli.xd.shell.terminal import ShellCompleter, read_lines
from storm_on_spark.cluster.errors import (
    ExistsError,
    NotFoundError,
    RecordError,
    TransitionError,
    UnavailableError,
)
from storm_on_spark.cluster.http.server import HttpServer, listen
from storm_on_spark.xd.admin.rest import schemas
from storm_on_spark.xd.client import AdminClient, checked_url
from storm_on_spark.xd.modules.counters import Counter
from storm_on_spark.xd.modules.counters.values import write_counter
from tests.unit.xd.rest_server import CONTAINER, Admin


@dataclass
class Served:
    """An admin that listens."""

    admin: Admin
    url: str

    @property
    def texts(self) -> dict[str, str]:
        return self.admin.definitions.texts

    def run(self, *arguments: str) -> Result:
        """Runs a command outside the shell."""
        return CliRunner().invoke(main, [*arguments, "--admin", self.url])

    def typed(self, *lines: str) -> Result:
        """Runs lines in a shell without a terminal."""
        return CliRunner().invoke(main, ["xd-shell", "--admin", self.url], input="\n".join(lines))


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    # No test sees the modules of who runs it.
    monkeypatch.setenv("STORM_SPARK_XD_HOME", str(tmp_path / "home"))
    admin, listener = Admin(), listen("127.0.0.1", 0)
    with HttpServer(admin.app, listener):
        yield Served(admin, f"http://127.0.0.1:{listener.getsockname()[1]}")


@pytest.fixture
def shell(served: Served) -> Iterator[Shell]:
    found = Shell(AdminClient(served.url), {})
    yield found
    found.close()


CREATE = 'stream create ticktock --definition "time | log"'


def test_the_walk_through_of_spring_xd(served: Served) -> None:
    done = served.typed(CREATE, "stream deploy ticktock", "runtime modules", "runtime containers", "stream list")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == WALK


WALK = """\
Created new stream 'ticktock'
Deployed stream 'ticktock'
  Module                  Container Id                          Options                                          Deployment Properties
  ----------------------  ------------------------------------  -----------------------------------------------  ---------------------
  ticktock.sink.log.1     2ebbbc9b-63ac-4da4-aa32-e39d69eb546b  {name=ticktock, expression=payload, level=INFO}  {count=1, sequence=1}
  ticktock.source.time.1  2ebbbc9b-63ac-4da4-aa32-e39d69eb546b  {fixedDelay=1, format=yyyy-MM-dd HH:mm:ss}       {count=1, sequence=1}
  Container Id                          Host            IP Address   PID    Groups    Custom Attributes
  ------------------------------------  --------------  -----------  -----  --------  -----------------
  2ebbbc9b-63ac-4da4-aa32-e39d69eb546b  ultrafox.local  192.168.1.6  19222  fast,big  {rack=7}
  Stream Name  Stream Definition  Status
  -----------  -----------------  --------
  ticktock     time | log         deployed
"""  # noqa: E501


@pytest.mark.parametrize(
    ("truth", "done"), [("true", "Created and deployed"), ("false", "Created new"), ("", "Created and deployed")]
)
def test_a_flag_may_have_a_value_as_in_spring_xds_shell(served: Served, truth: str, done: str) -> None:
    typed = served.typed(f'stream create --name foo --definition "time | log" --deploy {truth}')
    assert typed.exit_code == 0, typed.stderr
    assert done in typed.stdout


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_of_dots_is_no_list_of_all(served: Served, name: str) -> None:
    assert served.typed(CREATE, "stream deploy ticktock").exit_code == 0
    for command in ("undeploy", "destroy"):
        refused = served.run("stream", command, name)
        assert (refused.exit_code, f"no stream named '{name}'" in refused.stderr) == (1, True), refused.stderr
    assert served.texts
    assert served.admin.runtime.deployed


def test_the_way_back(served: Served) -> None:
    served.texts.update(a="time | log", b="time | log")
    done = served.typed(
        "stream deploy --name a",
        "stream undeploy a",
        "stream destroy --name a",
        'stream create c --definition "time | log" --deploy',
        "stream all undeploy --force",
        "stream all destroy --force",
    )
    assert done.stdout.splitlines() == [
        "Deployed stream 'a'",
        "Un-deployed stream 'a'",
        "Destroyed stream 'a'",
        "Created and deployed new stream 'c'",
        "Un-deployed all the streams",
        "Destroyed all streams",
    ]
    assert served.texts == {}


def test_jobs_in_the_words_of_spring_xd(served: Served) -> None:
    done = served.typed(
        'job create nightly --definition "timestampfile || <a:timestampfile & b:timestampfile>"',
        "job deploy nightly",
        """job launch nightly --params '{"day": 7}'""",
        "job execution stop --id 1",
        "job execution restart 1",
        "job execution list",
        "job execution all stop --force",
        "job undeploy nightly",
        "job destroy nightly",
        "job create other --definition timestampfile --deploy",
    )
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:5] == [
        "Successfully created job 'nightly'",
        "Deployed job 'nightly'",
        "Successfully submitted launch request for job 'nightly'",
        "Stopped Job execution that has executionId '1'",
        "Restarted Job execution that had executionId '1'",
    ]
    headings = "Id Job Name Start Time Step Execution Count Execution Status Deployment Status Definition Status"
    assert " ".join(lines[5].split()) == headings
    assert [line.split()[:2] for line in lines[7:9]] == [["2", "nightly"], ["1", "nightly"]]
    assert lines[9:] == [
        "Stopped all the job executions",
        "Un-deployed Job 'nightly'",
        "Destroyed job 'nightly'",
        "Successfully created and deployed job 'other'",
    ]
    assert served.admin.job_runtime.launched[2].parameters == {"day": "7"}


def test_modules_of_the_admin(served: Served) -> None:
    done = served.typed("module list", "module info --name sink:log", "module info null")
    assert "  time     splitter       jdbc" in done.stdout
    assert "Information about sink module 'log':" in done.stdout
    assert "  level        The level in each line. One of FATAL" in done.stdout
    assert "  It has no options." in done.stdout


_LOUD = """
from storm_on_spark import BaseBasicBolt, Fields
from storm_on_spark.xd.modules import ModuleDeclaration


class Loud(BaseBasicBolt):
    def execute(self, tup, collector):
        collector.emit([tup["payload"].upper(), tup["headers"]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("payload", "headers"))


MODULE = ModuleDeclaration("processor", "loud", "Makes payloads loud.", Loud)
"""


def test_modules_are_added_to_the_admin(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "loud.py"
    file.write_text(_LOUD)
    done = served.run("module", "upload", str(file))
    assert (done.exit_code, done.stdout) == (0, "Successfully uploaded module 'processor:loud'\n")
    done = served.typed(
        "module compose both --definition 'loud | filter'", "module info both", "module delete --name loud"
    )
    assert "Successfully created module 'both' with type processor" in done.stdout
    assert "filter.expression" in done.stdout
    assert "processor:loud can't be deleted: processor:both is composed of it" in done.stderr
    served.texts["shouting"] = "time | both | log"
    done = served.run("module", "delete", "processor:both")
    assert done.exit_code != 0
    assert "processor:both can't be deleted: it is used by stream shouting" in done.stderr
    served.texts.clear()
    done = served.typed("module delete both", "module delete loud", "module info loud")
    assert done.stdout.count("Successfully destroyed module") == 2
    assert "There is no module 'loud'" in done.stderr
    file.write_text("MODULE = 1")
    done = served.run("module", "upload", str(file))
    assert (done.exit_code, "a variable MODULE with a ModuleDeclaration" in done.stderr) == (2, True)
    done = served.run("module", "upload", str(tmp_path / "none.py"))
    assert (done.exit_code, "can't be read" in done.stderr) == (2, True)


def test_options_of_an_admin_need_one() -> None:
    done = CliRunner().invoke(main, ["module", "list", "-c", "zk.client.connect=localhost:1"])
    assert (done.exit_code, "need --admin URL" in done.stderr) == (2, True)


def test_counters_of_the_admin(served: Served, tmp_path: Path) -> None:
    folder = tmp_path / "home" / "counters"
    for writer, count in (("a", 2), ("b", 3)):
        write_counter(folder, Counter("counter", "sizes", {"value": count}), writer)
    write_counter(folder, Counter("aggregate-counter", "times", {"hour": {}, "day": {"1970-01-01": 7}}), "a")
    assert served.run("counter", "display", "sizes").stdout == "5\n"
    done = served.run("counter", "display", "times", "--kind", "aggregate-counter", "--resolution", "day", "--json")
    found = json.loads(done.stdout)
    jsonschema.validate(found, schema_of("counter"))
    assert found == {"kind": "aggregate-counter", "name": "times", "values": {"day": {"1970-01-01": 7}}}
    done = served.run("counter", "list", "--json")
    assert json.loads(done.stdout) == {"kind": "counter", "counters": ["sizes"]}
    assert served.run("counter", "delete", "sizes").stdout == "Deleted counter 'sizes'\n"
    assert served.run("counter", "display", "sizes").exit_code == 1
    for wrong in (["--dir", "."], ["--resolution", "day"]):
        assert served.run("counter", "display", "sizes", *wrong).exit_code == 2
    done = CliRunner().invoke(main, ["counter", "list", "--token-file", "x"])
    assert (done.exit_code, "need --admin URL" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        (["stream", "create", "new", "--definition", "time | log"], {"name", "definition", "status"}),
        (
            ["stream", "create", "new", "--definition", "time | log", "--deploy"],
            {"name", "state", "properties", "modules"},
        ),
        (
            ["stream", "deploy", "there", "--properties", "module.log.count=1"],
            {"name", "state", "properties", "modules"},
        ),
        (["stream", "undeploy", "up"], {"name", "operation"}),
        (["stream", "destroy", "there"], {"name", "operation"}),
        (["stream", "list"], {"streams"}),
        (["stream", "all", "destroy", "--force"], {"name", "operation"}),
        (["runtime", "containers"], {"containers"}),
        (["runtime", "modules", "--containerId", CONTAINER], {"modules"}),
        (["stream", "destroy", "none"], {"error"}),
        (["job", "list"], {"jobs"}),
        (["job", "create", "new", "--definition", "timestampfile"], {"name", "definition", "status"}),
        (["job", "status", "nightly"], {"job", "executions"}),
        (["job", "execution", "list"], {"executions"}),
        (["job", "execution", "display", "7"], {"error"}),
    ],
)
def test_outside_the_shell_there_is_json_that_is_as_described(
    served: Served, arguments: list[str], keys: set[str]
) -> None:
    served.texts.update(there="time | log", up="time | log")
    served.admin.runtime.deploy("up", {}, fused=False)
    served.admin.jobs.texts["nightly"] = "timestampfile"
    served.admin.job_runtime.deploy("nightly", {}, fused=False)
    served.admin.job_runtime.launch("nightly", {})
    done = served.run(*arguments, "--json")
    document = json.loads(done.stdout)
    assert document.keys() == keys, done.stderr
    jsonschema.validate(document, schema_of(arguments[0]))
    assert done.exit_code == (1 if keys == {"error"} else 0)


def test_help_names_every_command_with_its_groups(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.execute("help") == 0
    shown = capsys.readouterr().out
    assert "..." not in shown
    assert "Usage" not in shown, "a shell is no program"
    lines = [line.strip() for line in shown.splitlines()]
    for words, command in leaves(shell.root):
        assert any(line.startswith(f"{words} ") for line in lines), words
        assert summary(command).partition(" ")[0] in shown
    assert "stream all undeploy" in shown
    assert "Jobs:" in lines


@pytest.mark.parametrize(
    ("line", "code", "part"),
    [
        ("strea", 2, "Error: No such command 'strea'. Did you mean 'stream'? `help` lists the commands."),
        ("stream", 2, "Commands:"),
        ("stream create", 2, "Missing option '--definition'"),
        ("stream create --definition 'time | log'", 2, "Missing argument 'NAME'"),
        ("stream create '' --definition 'time | log'", 2, "Missing argument 'NAME'"),
        ("stream create a b --definition 'time | log'", 2, "unexpected extra argument (b)"),
        ("stream create a --name b --definition 'time | log'", 2, "NAME was given twice"),
        ("stream create 'a", 2, "the quote ' has no end (pos 14)"),
        ("stream create a --definition time | log", 2, "unexpected extra argument"),
        ("stream create a/b --definition 'time | log'", 2, "$.name"),
        ("stream create a --definition 'time | lag'", 2, "XD112E: (pos 7)"),
        ("stream create a --definition ''", 2, "$.definition"),
        (f"stream create a --definition '{'x' * 70_000}'", 2, "$.definition"),
        (f"stream create a --definition '{'x' * 1_100_000}'", 2, "at most 1,048,576 bytes"),
        ("stream create there --definition 'time | log'", 1, "already a stream named 'there'"),
        ("stream create a --definition 'time | log' --depoly", 2, "No such option"),
        ("stream create a --definition 'time | log' --admin http://localhost:1", 2, "No such option"),
        ("stream deploy none", 1, "no stream named 'none'"),
        ("stream deploy ../there", 1, "There is no POST"),
        ("stream deploy there --properties count", 2, "such as module.log.count=2, got 'count'"),
        ("stream deploy there --properties module.a.count=1,module.a.count=2", 2, "each property once"),
        ("stream deploy there --properties count=1", 2, "Expected module.<label>.<property>"),
        ("stream deploy there --propertiesFile none", 2, "none can't be read: No such file"),
        ("stream deploy there --propertiesFile /tmp", 2, "/tmp can't be read: Is a directory"),
        (
            "stream deploy there --propertiesFile /tmp --properties module.log.count=1",
            2,
            "Expected one of --properties",
        ),
        ("stream deploy there --timeout soon", 2, "a number of seconds"),
        ("stream undeploy there", 1, "not deployed"),
        ("stream destroy none", 1, "no stream named 'none'"),
        ("stream all destroy", 2, "Expected --force"),
        ("job create a --definition b", 2, "XD112E: (pos 0): Expected a job here, one of filejdbc"),
        ("job create a --definition log", 2, "got log, which is a sink"),
        ("job create a --definition 'timestampfile | timestampfile'", 2, "XD119E: (pos 29): Expected '='"),
        ("job create a --definition '<timestampfile'", 2, "Expected '&', or '>'"),
        ("job create a --definition 'timestampfile --append=perhaps'", 2, "XD114E: (pos 23): Expected true or false"),
        ("job create a --definition 'timestampfile --dir=a'", 2, "XD113E"),
        ("job create a --definition sparksql", 2, "XD115E"),
        ("job deploy none", 1, "no job named 'none'"),
        ("job deploy there", 1, "no job named 'there'"),
        ("job launch none", 1, "no job named 'none'"),
        ("job launch idle", 1, "'idle' is not currently deployed"),
        ("job launch idle --params {a", 2, "--params: expected a JSON object"),
        ("job launch idle --params '[1]'", 2, "--params: expected a JSON object of texts and numbers"),
        (f'job launch idle --params \'{{"a": "{"x" * 5_000}"}}\'', 2, "$.parameters[...]"),
        ("job status none", 1, "no job named 'none'"),
        ("job execution display", 2, "Expected one ID"),
        ("job execution display 1 --id 1", 2, "Expected one ID"),
        ("job execution display last", 2, "not a valid integer"),
        ("job execution display 99", 1, "no execution 99"),
        ("job execution stop --id 99", 1, "no execution 99"),
        ("job execution restart 99", 1, "no execution 99"),
        ("job execution all stop", 2, "Expected --force"),
        ("job undeploy idle", 1, "not deployed"),
        ("job destroy none", 1, "no job named 'none'"),
        ("module info tim", 2, "There is no module 'tim'"),
        ("module info sink:time", 2, "There is no module 'sink:time'"),
        ("runtime", 2, "Commands:"),
        ("runtime modules here", 2, "unexpected extra argument (here)"),
        ("counter display none", 1, "none"),
        ("admin config server localhost", 2, "Expected the URL of an admin"),
        ("admin config server http://localhost:99999", 2, "Expected the URL of an admin"),
        ("admin config server http://me:secret@localhost", 2, "Expected the URL of an admin"),
        ("script --file no-such-file", 2, "can't be read"),
        ("help fly", 2, "No such command 'fly'"),
    ],
)
def test_a_line_that_makes_no_sense_is_refused_and_changes_nothing(
    served: Served, shell: Shell, capsys: pytest.CaptureFixture[str], line: str, code: int, part: str
) -> None:
    served.texts["there"] = "time | log"
    served.admin.jobs.texts["idle"] = "timestampfile"
    assert shell.execute(line) == code
    told = capsys.readouterr()
    assert part in told.err, told.err
    assert "Traceback" not in told.err
    assert told.out == ""
    assert served.texts == {"there": "time | log"}
    assert served.admin.jobs.texts == {"idle": "timestampfile"}
    assert served.admin.runtime.deployed == served.admin.job_runtime.deployed == {}
    assert served.admin.job_runtime.launched == {}
    assert shell.client.url == served.url


@settings(deadline=None, max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.lists(
        st.one_of(
            st.sampled_from(
                ["stream", "create", "deploy", "destroy", "--name", "--definition", "job", "runtime", "'", '"']
            ),
            st.text(max_size=10),
        ),
        max_size=6,
    )
)
def test_no_line_ends_the_shell(served: Served, shell: Shell, words: list[str]) -> None:
    served.texts.clear()
    line = " ".join(words)
    assert shell.execute(line) in (0, 1, 2)
    list(ShellCompleter(shell).get_completions(Document(line), CompleteEvent()))
    shell.ended = False


def test_a_script_ends_at_the_first_line_that_fails(served: Served, tmp_path: Path) -> None:
    script = tmp_path / "walk.cmd"
    script.write_text(f"# comment\n// another\n\n{CREATE}\nstream deploy none\nstream destroy ticktock\n")
    done = CliRunner().invoke(main, ["xd-shell", "--admin", served.url, "--cmdfile", str(script)])
    assert (done.exit_code, done.stdout) == (1, "Created new stream 'ticktock'\n")
    assert done.stderr.splitlines()[-1] == f"{script}, line 5: stream deploy none"
    assert served.texts.keys() == {"ticktock"}


def test_lines_behind_exit_are_not_executed(served: Served) -> None:
    assert served.typed("version", "exit", CREATE).exit_code == 0
    assert served.texts == {}


def test_a_script_may_call_others_but_not_for_ever(served: Served, tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner.cmd", tmp_path / "outer.cmd"
    inner.write_text(CREATE)
    outer.write_text(f"script --file {inner}\nscript --file {outer}\n")
    done = served.typed(f"script --file {outer}")
    assert done.exit_code == 1, "the stream is there already, the second time"
    outer.write_text(f"script --file {outer}\n")
    done = served.typed(f"script --file {outer}")
    assert done.exit_code == 2
    assert "at most 10 scripts inside each other" in done.stderr


def test_a_file_that_is_no_script(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "binary"
    file.write_bytes(b"\xff\xfe")
    done = served.typed(f"script --file {file}")
    assert (done.exit_code, "is not a script" in done.stderr) == (2, True)


def test_the_shell_goes_to_another_admin(served: Served, shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    other, listener = Admin(), listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with HttpServer(other.app, listener):
        assert shell.execute(f"admin config server {url}") == 0
        assert shell.execute(CREATE) == 0
        assert shell.execute("admin config info") == 0
    assert capsys.readouterr().out.splitlines()[::2] == [f"Successfully targeted {url}"] * 2
    assert (served.texts, other.definitions.texts) == ({}, {"ticktock": "time | log"})


def test_properties_stand_in_a_file(served: Served, tmp_path: Path) -> None:
    served.texts["there"] = "time | log"
    file = tmp_path / "there.properties"
    file.write_text("# Two of them.\nmodule.log.count = 2\n\nmodule.log.criteria=groups.contains('a,b')\n")
    assert served.run("stream", "deploy", "there", "--propertiesFile", str(file)).exit_code == 0
    expected = {"module.log.count": "2", "module.log.criteria": "groups.contains('a,b')"}
    assert served.admin.runtime.deployed["there"].properties == expected


def test_without_an_admin_a_sentence_says_so() -> None:
    done = CliRunner().invoke(main, ["stream", "list", "--admin", "http://127.0.0.1:1"])
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: no admin answers at http://127.0.0.1:1: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("state", "code", "part"),
    [
        ("incomplete", 1, "Stream 'ticktock' is incomplete: not every module has a suitable container"),
        ("failed", 1, "Stream 'ticktock' has failed"),
        ("deploying", 1, "Stream 'ticktock' is still being deployed after 0 s"),
    ],
)
def test_deployed_is_said_of_what_is_deployed(served: Served, state: schemas.State, code: int, part: str) -> None:
    served.texts["ticktock"] = "time | log"
    view = schemas.DeploymentView(name="ticktock", state=state, properties={}, modules=())
    served.admin.runtime.answer = view
    served.admin.runtime.deployed["ticktock"] = view
    done = served.run("stream", "deploy", "ticktock", "--timeout", "0")
    assert (done.exit_code, done.stdout) == (code, "")
    assert part in done.stderr


@given(words=st.lists(st.text(max_size=20), max_size=5))
def test_quoted_words_come_back(words: list[str]) -> None:
    quoted = [f"'{word.translate({ord(each): chr(92) + each for each in (chr(92), chr(39))})}'" for word in words]
    assert split_line(" ".join(quoted)) == words


@given(line=st.text(alphabet="ab '\"\\\n", max_size=30))
def test_lines_are_read_as_a_posix_shell_with_escapes_in_both_quotes_reads_them(line: str) -> None:
    oracle = shlex.shlex(line, posix=True, punctuation_chars=False)
    oracle.whitespace_split, oracle.commenters, oracle.escapedquotes = True, "", "'\""
    try:
        expected = list(oracle)
    except ValueError:
        with pytest.raises(ValueError, match="pos"):
            split_line(line)
        return
    assert split_line(line) == expected


# At a terminal.


def completed(shell: Shell, line: str) -> set[str]:
    found = ShellCompleter(shell).get_completions(Document(line), CompleteEvent())
    return {line[: len(line) + each.start_position] + each.text for each in found}


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("", "stream"),
        ("", "help"),
        ("st", "stream"),
        ("stream d", "stream destroy"),
        ("help stream d", "help stream destroy"),
        ("stream all ", "stream all undeploy"),
        ("stream deploy ", "stream deploy orders"),
        ("stream deploy --name o", "stream deploy --name orders"),
        ("stream deploy orders ", "stream deploy orders --properties"),
        ("stream create x --d", "stream create x --definition"),
        ('stream create x --definition "ti', 'stream create x --definition "time'),
        ('stream create x --definition "time | fi', 'stream create x --definition "time | filter'),
        ("stream create x --definition 'time --f", "stream create x --definition 'time --format="),
        ('stream create x --definition="tap:stream:o', 'stream create x --definition="tap:stream:orders >'),
        ('job create x --definition "times', 'job create x --definition "timestampfile'),
        ('job create x --definition "<script & ', 'job create x --definition "<script & timestampfile'),
        ("job create x --definition 'script --l", "job create x --definition 'script --location="),
        ("module info source:ti", "module info source:time"),
        ("admin config s", "admin config server"),
    ],
)
def test_tab_completes(served: Served, shell: Shell, line: str, some: str) -> None:
    served.texts["orders"] = "time | log"
    assert some in completed(shell, line)


def test_tab_proposes_nothing_that_a_shell_does_not_take(shell: Shell) -> None:
    found = completed(shell, "stream list -")
    assert found == {"stream list --help"} or not found
    assert completed(shell, "nothing of that ") == set()


def test_tab_without_an_admin_still_completes_commands(tmp_path: Path) -> None:
    shell = Shell(AdminClient("http://127.0.0.1:1"), {})
    assert completed(shell, "st") == {"stream"}
    assert completed(shell, "stream deploy ") == set()
    shell.close()


def test_a_session_at_a_terminal(
    served: Served, shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = tmp_path / "xd" / "shell-history"
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        keys.send_text(f"{CREATE}\nstream deploy ticktock\n\x03exit\n")
        read_lines(shell, history)
    assert capsys.readouterr().out == "Created new stream 'ticktock'\nDeployed stream 'ticktock'\n"
    assert f"+{CREATE}" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0
    assert shell.banner().splitlines()[0].endswith(f" | Admin Server Target: {served.url}")


# The client.


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        (lambda client: client.ask("get_stream", name="none"), NotFoundError),
        (lambda client: client.ask("undeploy_stream", name="there"), TransitionError),
        (lambda client: client.ask("get_execution", id="1"), NotFoundError),
        (lambda client: client.ask("list_streams", query={"page": "x"}), RecordError),
        (
            lambda client: client.ask("create_stream", schemas.CreateDefinition(name="there", definition="time | log")),
            ExistsError,
        ),
    ],
)
def test_a_refusal_is_the_error_that_it_was(
    served: Served, ask: Callable[[AdminClient], object], kind: type[Exception]
) -> None:
    served.texts["there"] = "time | log"
    with AdminClient(served.url) as client, pytest.raises(kind):
        ask(client)


def test_an_admin_without_a_leader_is_unavailable(served: Served) -> None:
    served.texts["there"] = "time | log"
    served.admin.runtime.refusal = UnavailableError("there is no leader")
    with AdminClient(served.url) as client, pytest.raises(UnavailableError, match="there is no leader"):
        client.ask("deploy_stream", schemas.Deploy(), name="there")


def test_all_pages_are_asked_for(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.texts.update({f"s{number:04}": "time | log" for number in range(2 * schemas.MAXIMUM_PAGE_SIZE + 1)})
    with AdminClient(served.url) as client:
        assert [each.name for each in client.every("list_streams")] == list(served.texts)


@pytest.mark.parametrize(
    "url", ["", "localhost:9393", "ftp://localhost", "http://", "http://a b", "http://h/path", "http://h?x"]
)
def test_what_is_no_url_of_an_admin(url: str) -> None:
    with pytest.raises(ValueError, match="Expected the URL of an admin"):
        checked_url(url)
