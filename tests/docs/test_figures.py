"""Measured figures stand in generated blocks only: in prose nobody notices when they are no longer true.

Limits and configured values may stand in prose. `CONFIGURED` names each of them with the line of code that sets it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PAGES = (
    "README.md",
    "docs/architecture.md",
    "docs/concepts.md",
    "docs/getting-started.md",
    "docs/high-availability.md",
    "docs/performance.md",
    "docs/performance/benchmarks.md",
    "docs/reliability.md",
    "docs/storage.md",
)

CONFIGURED = {
    # page and figure: the file and the text by which the code sets the value
    ("docs/architecture.md", "50 ms"): ("storm_on_spark/runtime/spouts/pacing.py", "cut_secs: float = 0.05"),
    ("docs/high-availability.md", "20 s"): (
        "storm_on_spark/api/config/keys.ini",
        "[storm.zookeeper.session.timeout]\ntype = int >= 1\ndefault = 20000",
    ),
    ("docs/high-availability.md", "16 GB"): ("storm_on_spark/cli/dev/cluster.py", "_SPARE_BYTES: Final = 15 << 30"),
    ("docs/high-availability.md", "3 s"): ("storm_on_spark/cluster/driver/main.py", "_GRACE_SECS = 3.0"),
    ("docs/high-availability.md", "10 s"): ("storm_on_spark/cluster/http/limits.py", "head_secs: float = 10.0"),
    ("docs/high-availability.md", "30 s"): ("storm_on_spark/cluster/http/limits.py", "idle_secs: float = 30.0"),
    ("docs/high-availability.md", "60 s"): ("storm_on_spark/cluster/http/limits.py", "write_secs: float = 60.0"),
    ("docs/high-availability.md", "16 kB"): ("storm_on_spark/cluster/http/limits.py", "head_bytes: int = 16 * 1024"),
    ("docs/high-availability.md", "4 kB"): ("storm_on_spark/cluster/http/limits.py", "LEAST_RATE: Final = 4096"),
    ("docs/performance.md", "1,000 sentences a second"): ("lab/benchmarks/cases.py", "at(1000)"),
    ("docs/performance.md", "5 s"): (
        "storm_on_spark/api/config/keys.ini",
        "default = 5000\ndoc = Milliseconds between two checkpoints in real time",
    ),
    ("docs/performance/benchmarks.md", "2,000 messages a second"): ("lab/benchmarks/studies/soak.py", "default=2000.0"),
    ("docs/reliability.md", "4 s"): ("storm_on_spark/runtime/batches/rules/restarts.py", "(0.0, 0.5, 1.0, 2.0, 4.0)"),
    ("docs/reliability.md", "256 MiB"): ("storm_on_spark/api/config/keys.ini", f"default = {256 << 20}"),
    ("docs/reliability.md", "16 MiB"): ("storm_on_spark/runtime/spouts/log/writer.py", "SEGMENT_BYTES = 16 << 20"),
}

GENERATED = re.compile(r"<!-- ([\w -]+): begin -->.*?<!-- \1: end -->", re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
UNIT = r"(?:\u00d7|x|times|%|per cent|ns|µs|ms|s|seconds?|minutes?|\w+/s|[kMGT]i?B|bytes?|(?:\w+ )?(?:a|per) second)"
FIGURE = re.compile(rf"(?<![\w.])\d[\d.,]*(?: to \d[\d.,]*)?\s?{UNIT}(?!\w)")


def figures(text: str) -> list[str]:
    """Returns the figures with a unit in the prose of a page: outside of generated blocks and of code."""
    return [" ".join(found.split()) for found in FIGURE.findall(CODE.sub("", GENERATED.sub("", text)))]


@pytest.mark.parametrize("page", PAGES)
def test_a_figure_in_prose_is_a_configured_value(page: str) -> None:
    measured = [f for f in figures((ROOT / page).read_text(encoding="utf-8")) if (page, f) not in CONFIGURED]
    assert measured == [], f"{page}: a measured figure belongs to a generated block, a configured one to CONFIGURED"


@pytest.mark.parametrize(("page", "figure"), CONFIGURED)
def test_a_configured_figure_is_what_the_code_says(page: str, figure: str) -> None:
    file, text = CONFIGURED[page, figure]
    assert figure in figures((ROOT / page).read_text(encoding="utf-8")), "no longer on the page: remove the entry"
    assert text in (ROOT / file).read_text(encoding="utf-8"), f"{file} has another value than {page}"


@pytest.mark.parametrize(
    ("prose", "found"),
    [
        ("It is 40 \u00d7 faster.", ["40 \u00d7"]),
        ("1.5x as fast, 12,000 tuples/s, 3 ms or 97 %", ["1.5x", "12,000 tuples/s", "3 ms", "97 %"]),
        ("took 0.50 to 0.85 s and 690 MB", ["0.50 to 0.85 s", "690 MB"]),
        ("1,000 sentences a second", ["1,000 sentences a second"]),
        (
            "<!-- faults-s3: begin -->\n3 ms\n<!-- faults-s3: end -->\nSpark 4.2.1 on `local[2]` after `5 s`; 2 cores",
            [],
        ),
    ],
)
def test_figures_are_found(prose: str, found: list[str]) -> None:
    assert figures(prose) == found
