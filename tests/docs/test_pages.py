"""The documentation as a whole: pages that are up to date, links that lead somewhere, decisions in order."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"(?<!\!)\[[^\]]+\]\(([^)\s]+)\)")
CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors_of(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(CODE.sub("code", page.read_text(encoding="utf-8"))):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name_of(page)} links to {target}, which is not there"
        if anchor:
            assert anchor in anchors_of(file), f"{name_of(page)} links to {target}; there are {anchors_of(file)}"


def test_the_table_of_extras_is_that_of_the_project() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("-dependencies]")[2].partition("\n[")[0]
    extras = {name: re.findall(r'"([a-z0-9-]+)', packages) for name, packages in re.findall(r"(\w+) = (\[.*\])", text)}
    page = (ROOT / "docs/getting-started.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE)
    assert [(name, packages.split(", ")) for name, packages in rows] == sorted(
        (name, packages) for name, packages in extras.items() if name != "dev"
    )


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_extras_are_installed_from_a_checkout(page: Path) -> None:
    for place, extras in re.findall(r"pip install ['\"]([^'\"\[]+)\[([^\]]+)\]", page.read_text(encoding="utf-8")):
        assert place in (".", "path/to/storm-on-spark"), f"{name_of(page)}: no package index has {place}[{extras}]"


def test_as_many_lines_are_loaded_as_the_page_says_and_from_files_that_exist() -> None:
    page = (ROOT / "docs/connectors.md").read_text(encoding="utf-8")
    (loaded,) = re.findall(r"--load lines=(\S+)\n```\n+```\n(\d+) lines are in topic lines\.", page)
    assert int(loaded[1]) == len((ROOT / loaded[0]).read_bytes().splitlines())
    for path in re.findall(r"--load [\w-]+=(\S+)", page):
        assert (ROOT / path).is_file(), path


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        links = LINK.findall(CODE.sub("code", page.read_text(encoding="utf-8")))
        files = [(page.parent / link.partition("#")[0]).resolve() for link in links if "://" not in link]
        waiting += [file for file in files if file.suffix == ".md" and file.is_file()]
    assert not set(PAGES) - reached


def test_the_configuration_page_is_up_to_date(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location(
        "generate_configuration_docs", ROOT / "tools/generate_configuration_docs.py"
    )
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    assert generator.PAGE.read_text(encoding="utf-8") == generator.page(), (
        "docs/configuration.md is out of date: run python tools/generate_configuration_docs.py"
    )


def test_the_modules_on_the_page_of_streams_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("generate_streams_docs", ROOT / "tools/generate_streams_docs.py")
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    text = generator.PAGE.read_text(encoding="utf-8")
    assert generator.with_modules(text) == text, "docs/streams.md: run python tools/generate_streams_docs.py"


def test_the_support_matrix_is_up_to_date_and_every_yes_names_a_test_that_exists() -> None:
    spec = importlib.util.spec_from_file_location("generate_support_matrix", ROOT / "tools/generate_support_matrix.py")
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    text = generator.PAGE.read_text(encoding="utf-8")
    assert generator.with_matrix(text) == text, "docs/migration.md: run python tools/generate_support_matrix.py"
    for row in (row for rows in generator.sections().values() for row in rows):
        assert row["answer"] in {"yes", "partly", "not yet", "no"}, row
        assert ("proof" in row or row.get("untested") is True) == (row["answer"] in {"yes", "partly"}), row
        if "proof" in row:
            assert "def test_" in (ROOT / row["proof"]).read_text(encoding="utf-8"), row


def test_decisions_are_numbered_and_listed() -> None:
    folder = ROOT / "docs/decisions"
    decisions = sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert [int(name[:4]) for name in decisions] == list(range(1, len(decisions) + 1))
    listed = LINK.findall((folder / "README.md").read_text(encoding="utf-8"))
    assert list(dict.fromkeys(link for link in listed if link in decisions)) == decisions
    for name in decisions:
        text = (folder / name).read_text(encoding="utf-8")
        assert re.match(rf"# {name[:4]}\. .+\n", text), name
        assert re.match(r".+\n\nStatus: (accepted|superseded by \[)", text), f"{name} has no status"
        headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
        expected = ["Decision", "Why", "Measured", "What would change it"]
        assert [heading for heading in headings if heading in expected] == expected, name


def test_notebooks_carry_no_output() -> None:
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        assert notebook["nbformat"] == 4
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                assert cell["outputs"] == []
                assert cell["execution_count"] is None
