"""The study of the Python side: its special cases name what is there."""

from __future__ import annotations

import pytest

from lab.benchmarks.studies.python_side import CASES


@pytest.mark.parametrize("case", CASES)
def test_each_case_can_be_switched_off_and_on_again(case: str) -> None:
    for _ in range(2):
        with CASES[case]():
            pass
