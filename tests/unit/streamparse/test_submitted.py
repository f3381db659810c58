"""Topologies of commands, described in JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.streamparse.submitted import build_submitted


def document(script: str, **changes: Any) -> dict[str, Any]:
    spout = {"kind": "spout", "command": "node", "script": "words.js", "tasks": 1, "conf": {}, "inputs": []}
    bolt = {**spout, "kind": "bolt", "command": "/v/bin/streamparse_run", "script": script, "tasks": 2}
    source = {"component": "words", "stream": "default", "grouping": "fields", "fields": []}
    streams = {"default": {"fields": ["word"], "direct": False}}
    parts = {"words": {**spout, "streams": streams}, "count": {**bolt, "streams": {}, "inputs": [source]}}
    return {"version": 1, "components": parts, **changes}


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("no_such_module.Count", "is not in the code that was uploaded"),
        ("submitted_parts.Nothing", "is not in the code that was uploaded"),
        ("submitted_parts.Plain", "is no bolt of pystorm"),
        ("submitted_parts.Words", "is no bolt of pystorm"),
        ("-s json submitted_parts", "is not the name of a class in a module"),
        ("../x.Count", "is not the name of a class in a module"),
    ],
)
def test_a_class_that_is_no_bolt_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    (tmp_path / "submitted_parts.py").write_text(
        "from streamparse import Spout\nclass Plain: pass\nclass Words(Spout): pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        with pytest.raises(InvalidTopologyError, match=message) as refused:
            build_submitted(document(script))
    finally:
        sys.modules.pop("submitted_parts", None)
    assert 'component "count"' in str(refused.value)


def test_a_nimbus_imports_nothing() -> None:
    made = build_submitted(document("no_such_module.Count"), in_process=False)
    assert [type(found.component).__name__ for found in made.components.values()] == ["ShellSpout", "ShellBolt"]


def test_another_version_is_refused() -> None:
    with pytest.raises(InvalidTopologyError, match="has format version 2; this release reads 1: submit it again"):
        build_submitted(document("a.B", version=2))
