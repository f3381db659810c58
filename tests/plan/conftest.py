from __future__ import annotations

from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden plans again (pytest tests/plan --update-golden), to be read in the diff",
    )


@pytest.fixture
def golden(request):
    """Returns a function that compares a text with a golden file, or writes it under --update-golden."""
    # The option exists only if this directory was named on the command line.
    update = request.config.getoption("--update-golden", default=False)

    def check(name: str, text: str) -> None:
        file = GOLDEN / name
        if update:
            file.write_text(text, encoding="utf-8")
        assert file.exists(), f"no golden file {file.name}; write it with: pytest tests/plan --update-golden"
        assert text == file.read_text(encoding="utf-8"), "the plan changed; see pytest tests/plan --update-golden"

    return check
