from __future__ import annotations

from pathlib import Path

import pytest

from storm_on_spark.api import (
    AlreadyAliveError,
    AlreadyAliveException,
    Config,
    ConfigError,
    ConfigurableTopology,
    InvalidTopologyError,
    StormSubmitter,
    SubmitOptions,
    TopologyBuilder,
)
from storm_on_spark.api.building.submitter import taking
from storm_on_spark.testing import ListSpout


def builder() -> TopologyBuilder:
    made = TopologyBuilder()
    made.set_spout("words", ListSpout(["a"], fields=["word"]))
    return made


class Words(ConfigurableTopology):
    def __init__(self):
        self.args = None

    def run(self, args):
        self.args = args
        return self.submit("words", self.conf, builder())


def test_files_of_configuration_come_before_the_program(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("topology.workers: 2\nmy.key: 1\n")
    (tmp_path / "two.yaml").write_text("config:\n  my.key: 2\n")
    program = Words()
    with taking() as found:
        arguments = ["a", "-conf", str(tmp_path / "one.yaml"), "b", "-conf", str(tmp_path / "two.yaml")]
        assert ConfigurableTopology.start(program, arguments) == 0
    assert program.args == ["a", "b"]
    assert program.get_conf() is program.conf
    (submitted,) = found
    assert submitted.conf == {"topology.workers": 2, "my.key": 2}
    assert submitted.options == SubmitOptions("ACTIVE")


def test_the_name_may_be_in_the_configuration() -> None:
    class Named(ConfigurableTopology):
        def run(self, args):
            conf = self.conf
            if args:
                conf[Config.TOPOLOGY_NAME] = args[0]
            self.submit(conf, builder())

    with taking() as found:
        assert ConfigurableTopology.start(Named(), ["mine"]) == 0
        with pytest.raises(ConfigError, match=r"set topology\.name"):
            ConfigurableTopology.start(Named(), [])
    assert [submitted.name for submitted in found] == ["mine"]


def test_what_fails_outside_is_minus_one_as_in_storm(capsys: pytest.CaptureFixture[str]) -> None:
    class Empty(TopologyBuilder):
        def create_topology(self):
            raise InvalidTopologyError("there is no spout")

    class Wrong(Words):
        def run(self, args):
            return self.submit("words", self.conf, Empty())

    assert ConfigurableTopology.start(Wrong(), []) == -1
    assert "InvalidTopologyError" in capsys.readouterr().err
    with taking(), pytest.raises(InvalidTopologyError):
        ConfigurableTopology.start(Wrong(), [])


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="-conf takes the name of a YAML file"):
        ConfigurableTopology.start(Words(), ["-conf"])
    with pytest.raises(ConfigError, match="can't be read"):
        ConfigurableTopology.start(Words(), ["-conf", str(tmp_path / "gone.yaml")])
    with pytest.raises(TypeError, match="submit takes a name"):
        Words().submit("words", builder())
    with pytest.raises(InvalidTopologyError, match="not a Topology; give what its create_topology"):
        StormSubmitter.submit_topology("words", {}, builder())  # type: ignore[arg-type]
    with pytest.raises(InvalidTopologyError, match="the name of a topology"):
        StormSubmitter.submit_topology("", {}, builder().create_topology())
    with pytest.raises(ConfigError, match="a mapping"):
        StormSubmitter.submit_topology("words", [], builder().create_topology())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="ACTIVE or INACTIVE"):
        SubmitOptions("KILLED")  # type: ignore[arg-type]


def test_storms_names_of_exceptions() -> None:
    assert AlreadyAliveException is AlreadyAliveError
