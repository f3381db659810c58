"""The tables of the documentation: what was played now, and what was played before."""

from __future__ import annotations

from pathlib import Path

from lab.failover.harness import Result
from lab.failover.report import BEGIN, END, write_docs
from lab.suite.pages import rows_between

PAGE = f"""Before.

{BEGIN}
| figure | times | median | worst | limit |
|---|--:|--:|--:|--:|
| new leader after SIGKILL of the leader | 10 | 3.35 | 3.58 | 4 |
| a read of any live Nimbus, during failovers | 3,218 | 0.004 | 0.15 |  |

| topologies | supervisors | times | median | worst |
|---|--:|--:|--:|--:|
| 1,200 | 50 | 10 | 0.12 | 0.19 |

| fault | injected | leaders | writes under a fence | refused | topologies | result |
|---|--:|--:|--:|--:|--:|--:|
| one | 1 | 2 | 28 | 0 | 4 | passed |
| two | 1 | 2 | 9 | 0 | 1 | passed |

{END}

| two | is another table's |
"""


def test_what_was_played_is_new_and_the_rest_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    two, three = Result("2", "two"), Result("3", "three")
    two.problems.append("it broke")
    three.times["leader"] = [1.0, 2.0, 3.0]
    assert write_docs([two, three], page, ["one", "three", "two", "four"]) == ["four"]
    assert page.read_text() == PAGE, "it is written when all of it is known"
    assert write_docs([two, three], page, ["one", "three", "two"]) == []
    text = page.read_text()
    assert text.endswith("| two | is another table's |\n")
    rows = rows_between(text, BEGIN, END)
    assert rows["one"] == ["one", "1", "2", "28", "0", "4", "passed"]
    assert rows["two"][-1] == "FAILED"
    assert rows["1,200"] == ["1,200", "50", "10", "0.12", "0.19"]
    assert rows["new leader after SIGKILL of the leader"][1:4] == ["3", "2.00", "3.00"]
    assert rows["a read of any live Nimbus, during failovers"][1] == "3,218"
    assert text.index("| one ") < text.index("| three ") < text.index("| two ")
    assert "- two: it broke" in text
