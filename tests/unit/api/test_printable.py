"""Text from outside reaches a terminal without the control characters in it."""

from __future__ import annotations

import io
import logging

import pytest
from rich.console import Console
from status_page import COUNTS, status_page

from storm_on_spark import Fields, InvalidTopologyError, TopologyBuilder
from storm_on_spark.api.text.html import escape
from storm_on_spark.api.text.printable import is_one_line, one_line, printable
from storm_on_spark.cli.cluster.watching import errors, status
from storm_on_spark.cli.cluster.watching import list as lister
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.report import print_result
from storm_on_spark.cluster.security.logs import SafeFormatter
from storm_on_spark.xd.expressions import parse_expression
from storm_on_spark.xd.modules.inside.sinks import Log

EVIL = "bad \x1b]0;owned\x1b\\\x1b[2J\x9b31m\x7f\x08\r\u202e\u2066 [red]fake[/red]"
OBEYED = [chr(code) for code in (*range(9), *range(11, 32), *range(0x7F, 0xA0), *range(0x2028, 0x202F), 0x2066, 0x2069)]


@pytest.mark.parametrize("char", OBEYED, ids=ascii)
def test_what_a_terminal_obeys_is_shown_as_an_escape(char: str) -> None:
    assert printable(f"a{char}b") == f"a{ascii(char)[1:-1]}b"
    assert not is_one_line(f"a{char}b")


def test_other_text_stays() -> None:
    text = "größe 東京 👩‍💻 \u00a0 [red]"
    assert printable(f"{text}\n\t") == f"{text}\n\t"
    assert one_line(f"{text}\n") == f"{text}\\n"


def _harmless(text: str) -> bool:
    return "fake" in text and "[red]" in text and not any(char in text for char in EVIL if not is_one_line(char))


def _screen() -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    # Without colours every escape in what comes out would be one of the text.
    return Console(file=out, force_terminal=True, color_system=None, width=200, highlight=False), out


def test_status_errors_list_and_results_show_data_as_it_is() -> None:
    bolt = {"boltId": "b\x1b[31m", "tasks": 1, "executed": 1, **COUNTS, "lastError": f"x\n{EVIL}"}
    page = status_page(owner=EVIL, schedulerInfo=EVIL, failure=EVIL, bolts=[bolt])
    error = {"errorTime": 1, "task": 1, "errorHost": EVIL, "errorPort": 1, "error": EVIL, "trace": EVIL}
    error |= {"input": EVIL, "count": 2, "firstTime": 0, "beforeRestart": True}
    row = {"name": "n", "status": "A", "driverStatus": "d", "workersTotal": 1, "uptime": "", "tasksTotal": 1}
    row |= {"executorsTotal": 1, "replicationCount": 1, "owner": "o", "schedulerInfo": EVIL}
    for show in (
        lambda screen: status.show(screen, page),
        lambda screen: errors.show(screen, {EVIL: [error]}),
        lambda screen: lister.show(screen, [row]),
        lambda screen: print_result(screen, [{EVIL: EVIL}]),
        lambda screen: print_result(screen, [EVIL]),
    ):
        screen, out = _screen()
        show(screen)
        assert _harmless(out.getvalue())


def test_echoes_logs_sinks_and_pages_show_data_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    echo(EVIL)
    assert _harmless(capsys.readouterr().out)
    Log(EVIL, parse_expression("payload"), "INFO").execute({"payload": EVIL, "headers": {}}, None)  # type: ignore[arg-type]
    assert _harmless(capsys.readouterr().err)
    record = logging.LogRecord("a", logging.INFO, "", 1, EVIL, (), None)
    assert _harmless(SafeFormatter("%(message)s").format(record))
    assert _harmless(escape(EVIL))


@pytest.mark.parametrize("name", ["a\x1b[2J", "a\nb", "a\x9b", "a\u202eb"], ids=ascii)
def test_names_have_no_control_characters(name: str) -> None:
    builder = TopologyBuilder()
    with pytest.raises(InvalidTopologyError, match="must have no control characters"):
        builder.set_spout(name, lambda: 1)
    with pytest.raises(InvalidTopologyError, match="must have no control characters"):
        Fields("word", name)
