"""Runs what the documentation shows.

- A `python` block is executed; the blocks of a page share their names, in the order of the page.
- A `text` block right behind it is what it prints.
- A `console` block that begins with `$ storm-spark explain|validate|config|module|stream ...` shows what that prints.
- A `mermaid` block behind `<!-- storm-spark explain ... -->` is what that command prints.
- `sh` blocks are not run, but every command, option, target of make and path in them has to exist.

An HTML comment in the line before a block changes that: `<!-- spark -->` for what needs Spark, which is run in one
process for all pages, and `<!-- no test: reason -->`. Notebooks are run in kernels, by
`tests/integration/usage/test_notebook.py`.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from storm_on_spark.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w+)\n(?P<code>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!-- (.+?) -->\n *$")
RESULTS = "results of the pages: "


@dataclass
class Block:
    language: str
    code: str
    line: int
    mark: str = ""
    prints: str | None = None

    @property
    def is_tested(self) -> bool:
        return not self.mark.startswith("no test:")


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    blocks: list[Block] = []
    end = 0
    for found in FENCE.finditer(text):
        between, end = text[end : found.start()], found.end()
        code = re.sub(f"^{found['indent']}", "", found["code"], flags=re.MULTILINE)
        if found["language"] == "text" and blocks and blocks[-1].language == "python" and not between.strip():
            blocks[-1].prints = code
            continue
        mark = COMMENT.search(between)
        line = text.count("\n", 0, found.start()) + 2
        blocks.append(Block(found["language"], code, line, mark[1] if mark else ""))
    return blocks


def run_page(page: Path, *, with_spark: bool) -> None:
    """Executes the Python blocks of a page; raises what they raise."""
    # As in a script or a notebook, where classes belong to no module that a worker could import.
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(page):
        if block.language != "python" or not block.is_tested or (block.mark == "spark" and not with_spark):
            continue
        # The line numbers of the page, so that a traceback leads to the place.
        code = compile("\n" * (block.line - 1) + block.code, str(page), "exec", dont_inherit=True)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        if block.prints is not None:
            assert printed.getvalue() == block.prints, f"{page}:{block.line} printed:\n{printed.getvalue()}"


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def pages_with(language: str, mark: str | None = None) -> list[Path]:
    return [
        page
        for page in PAGES
        if any(
            block.language == language and block.is_tested and mark in (None, block.mark) for block in blocks_of(page)
        )
    ]


@pytest.mark.parametrize("page", pages_with("python"), ids=name_of)
def test_python_of_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page, with_spark=False)


@pytest.fixture(scope="module")
def spark_results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The error of each page that needs Spark, empty if there was none."""
    folder = tmp_path_factory.mktemp("pages")
    pages = [str(page) for page in pages_with("python", "spark")]
    done = subprocess.run(
        [sys.executable, __file__, *pages], cwd=folder, capture_output=True, text=True, timeout=280, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(RESULTS)]
    assert lines, f"exit code {done.returncode}:\n{done.stdout}\n{done.stderr}"
    results: dict[str, str] = json.loads(lines[-1].removeprefix(RESULTS))
    return results


@pytest.mark.spark
@pytest.mark.parametrize("page", pages_with("python", "spark"), ids=name_of)
def test_python_of_a_page_on_spark(page: Path, spark_results: dict[str, str]) -> None:
    assert spark_results[str(page)] == ""


LOG_TIME = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}(?= )", re.MULTILINE)


@pytest.mark.parametrize("page", pages_with("console"), ids=name_of)
def test_output_of_commands(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for block in blocks_of(page):
        if block.language != "console" or not block.is_tested:
            continue
        command, _, shown = block.code.partition("\n")
        prompt, program, name, *arguments = shlex.split(command)
        assert (prompt, program) == ("$", "storm-spark"), f"{page}:{block.line}: {command}"
        quick = name in ("explain", "validate", "config", "module")
        quick |= name == "stream" and ("validate" in arguments or "--in-process" in arguments)
        assert quick, f"{page}:{block.line}: {name} would start Spark"
        result = CliRunner().invoke(main, [name, *arguments])
        printed, shown = (LOG_TIME.sub("TIME", text.rstrip()) for text in (result.output, shown))
        assert printed == shown, f"{page}:{block.line} printed:\n{result.output}"


@pytest.mark.parametrize("page", pages_with("mermaid"), ids=name_of)
def test_diagrams(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for block in blocks_of(page):
        if block.language == "mermaid" and block.mark.startswith("storm-spark explain "):
            result = CliRunner().invoke(main, shlex.split(block.mark)[1:])
            assert result.output.rstrip() == block.code.rstrip(), f"{page}:{block.line} printed:\n{result.output}"


@pytest.mark.parametrize("page", pages_with("sh"), ids=name_of)
def test_commands_exist(page: Path) -> None:
    made = {
        Path(path)
        for path in ("topology.py", "my-project", "my-reach", "my_topology.py", "main.py", "shout.py", "kafka_words.py")
    }
    for block in blocks_of(page):
        if block.language != "sh" or not block.is_tested:
            continue
        for line in block.code.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            where = f"{page}:{block.line}: {line}"
            if words[:1] == ["storm-spark"]:
                _check_options(words[1:], where)
            if words[:1] == ["make"]:
                targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
                assert all(word in targets for word in words[1:] if "=" not in word), where
            for word in words[1:]:
                # A definition is one word, with blanks: its files are on the machines of containers.
                is_file = word.endswith(".py") and " " not in word
                if is_file and Path(word) not in made and not made & {*Path(word).parents}:
                    assert (ROOT / word).exists(), where


def _check_options(words: list[str], where: str) -> None:
    command: click.Command = main
    while words and isinstance(command, click.Group) and not words[0].startswith("-"):
        assert words[0] in command.commands, where
        command = command.commands[words.pop(0)]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    known |= {"--help", "-h"}
    unknown = [word for word in words if word.startswith("-") and word.partition("=")[0] not in known]
    assert not unknown, f"{where}: there is no {unknown}; there are {sorted(known)}"


def test_few_blocks_are_exempt() -> None:
    exempt = [
        f"{name_of(page)}:{block.line} {block.mark}"
        for page in PAGES
        for block in blocks_of(page)
        if not block.is_tested
    ]
    assert len(exempt) <= 6, exempt


def run_pages(pages: list[str]) -> None:
    """Executes the pages on one Spark session, and prints the error of each."""
    import traceback

    from storm_on_spark.spark.session import local_session, stop_session

    spark = local_session("local[2]")
    results = {}
    for page in pages:
        try:
            run_page(Path(page), with_spark=True)
            results[page] = ""
        except Exception:
            results[page] = traceback.format_exc()
    stop_session(spark)
    print(RESULTS + json.dumps(results), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "default")
    run_pages(sys.argv[1:])
