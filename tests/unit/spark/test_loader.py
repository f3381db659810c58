"""What `FILE_OR_MODULE[:ATTR]` finds, and what it says when it finds nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.topology import Topology
from storm_on_spark.launch.loader import LoadError, load

Write = Callable[..., Path]


@pytest.mark.parametrize(
    ("code", "attribute"),
    [
        ("topology = make()", ""),
        ("topology = make", ""),
        ("def build(conf): assert conf == {'a': 1}; return make()", ""),
        ("def build(conf=None): assert conf == {'a': 1}; return make()", ""),
        ("def build(): return make()", ""),
        ("build = lambda conf: 1/0\ntopology = make()", ""),
        ("mine = make()", ":mine"),
        ("", ":make"),
    ],
)
def test_a_topology_a_builder_or_build_is_found(module: Write, code: str, attribute: str) -> None:
    target = load(f"{module(code)}{attribute}")
    assert isinstance(target.topology({"a": 1}), Topology)


def test_a_relative_path_and_a_dotted_name_work(module: Write) -> None:
    module("topology = make()", "pkg/__init__.py")
    module("from . import topology", "pkg/my_count.py")
    for text in ("pkg/my_count.py", "pkg.my_count", "pkg.my_count:topology"):
        target = load(text)
        assert target.module.__name__ == "pkg.my_count"
        assert target.name == "my-count"
        assert len(target.topology({}).spouts) == 1


def test_a_module_beside_the_file_can_be_imported(module: Write, tmp_path: Path) -> None:
    module("answer = 42", "a folder/helper_of_mine.py", head="")
    file = module("from helper_of_mine import answer\ntopology = make()", "a folder/main_topology.py")
    assert load(str(file)).module.answer == 42


def test_conf_and_report_are_optional(module: Write) -> None:
    bare = load(str(module("topology = make()")))
    assert bare.conf == {}
    assert bare.report is None
    full = load(str(module("topology = make()\nconf = {'a': 1}\ndef report(spark, checkpoint, info): pass", "full.py")))
    assert full.conf == {"a": 1}
    assert full.report is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("my_cuont.py", r"^there is no file my_cuont\.py\. Did you mean my_count\.py\?$"),
        ("nowhere/x.py", r"^there is no file nowhere/x\.py$"),
        ("folder", r"^folder is a folder; name a file in it: a\.py$"),
        ("no_such_module", r"^there is no file and no module no_such_module; modules are looked for in "),
        ("no_such_package.module", "no module no_such_package.module"),
        ("my_count.py:nothing", r"^my_count\.py has no attribute 'nothing'; there are make, topology$"),
        ("plain.py", r"^plain\.py has neither a topology nor a function build.*; there are make$"),
        ("dotted.name.py", "its name has a dot in it"),
        ("json.py", "has the name of another module, 'json'"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(module: Write, text: str, message: str) -> None:
    module("topology = make()", "my_count.py")
    for name in ("plain.py", "folder/a.py", "dotted.name.py", "json.py"):
        module("", name)
    with pytest.raises(LoadError, match=message):
        load(text)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import no_such_library", r"^broken\.py:1: ModuleNotFoundError: No module named 'no_such_library'$"),
        ("\nraise ValueError('oh\\nno')", r"^broken\.py:2: "),
        ("def f(:", r"^broken\.py:1: SyntaxError: "),
        ("import sys\nsys.exit('bye')", r"^broken\.py:2: SystemExit: bye$"),
        ("import json\njson.loads('{')", r"^broken\.py:2: .*JSONDecodeError: "),
    ],
)
def test_an_error_while_importing_names_the_users_line(module: Write, code: str, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        load(str(module(code, "broken.py", head="")))


def test_an_error_while_building_names_the_users_line(module: Write) -> None:
    code = "def build(conf):\n    return conf['input']"
    file = module(code, "build_fails.py", head="")
    with pytest.raises(LoadError, match=r"^build_fails\.py:2: KeyError: 'input'$"):
        load(str(file)).topology({})


def test_our_own_errors_pass_through(module: Write) -> None:
    code = "def build(conf):\n    return TopologyBuilder().set_spout('__x', Numbers())"
    with pytest.raises(InvalidTopologyError):
        load(str(module(code))).topology({})


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("topology = 3", "topology is 3, not a Topology$"),
        (
            "topology = TopologyBuilder()",
            "is a TopologyBuilder, not a Topology; return what its create_topology",
        ),
        ("def build(conf): pass", "build returned None, not a Topology$"),
    ],
)
def test_something_else_than_a_topology_is_refused(module: Write, code: str, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        load(str(module(code))).topology({})


def test_a_conf_that_is_no_mapping_is_refused(module: Write) -> None:
    with pytest.raises(LoadError, match="conf must be a mapping from keys to values, not a list"):
        _ = load(str(module("topology = make()\nconf = ['a']"))).conf
