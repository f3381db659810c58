from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import storm_on_spark
from storm_on_spark.api import Config, ConfigError
from storm_on_spark.api.config import (
    FAMILIES,
    KEYS,
    KNOWN_PREFIXES,
    PROFILES,
    ConfigKey,
    Level,
    default_of,
    effective_conf,
    family_key,
    names,
    problems_of,
    validate_conf,
)
from storm_on_spark.api.config.names import ConfigNames
from storm_on_spark.api.config.table import sections
from storm_on_spark.api.config.types import PORTS, TEXT_OR_TEXTS, choice, integer, mapping, number, type_named

all_keys = pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
any_key = st.sampled_from(sorted(KEYS))
user_key = st.text().filter(lambda name: not name.startswith(KNOWN_PREFIXES))
any_value = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers())


# --- the registry -------------------------------------------------------------------------------------------


def test_the_constants_are_those_of_the_key_table(tmp_path: Path) -> None:
    written = tmp_path / "names.py"
    tool = Path(__file__).parents[4] / "tools" / "generate_config_names.py"
    subprocess.run([sys.executable, str(tool), str(written)], check=True)
    assert written.read_text("utf-8") == Path(str(names.__file__)).read_text("utf-8"), "run `make docs`"
    constants = {name: value for name, value in vars(ConfigNames).items() if not name.startswith("_")}
    assert sorted(constants.values()) == sorted(KEYS)
    assert all(getattr(Config, name) == value for name, value in constants.items())


OPTIONS = {"constant", "type", "default", "component", "doc", "planned", "accepted"}
TABLES = {"reasons", "families", "former names", *(f"profile {profile}" for profile in PROFILES)}


def test_the_key_table_says_nothing_that_nobody_reads() -> None:
    said = {name: dict(options) for name, options in sections().items() if name not in TABLES}
    assert list(said) == list(KEYS)
    assert {name: unknown for name, options in said.items() if (unknown := set(options) - OPTIONS)} == {}
    assert all(options.get("component", "yes") == "yes" for options in said.values())
    assert [name for name, options in said.items() if {"planned", "accepted"} <= set(options)] == []
    text = Path(str(names.__file__)).with_name("keys.ini").read_text("utf-8")
    uses = Counter(re.findall(r"= \$\{reasons:([\w-]+)\}", text))
    assert set(uses) == set(sections()["reasons"])
    assert [reason for reason, count in uses.items() if count == 1] == [], "belongs to the only key that has it"


def test_the_key_table_is_not_read_before_something_is_looked_up() -> None:
    code = (
        "import sys; from storm_on_spark import Config, TopologyBuilder; import storm_on_spark.runtime.run.settings\n"
        "print('configparser' in sys.modules)\n"
        "Config().set_debug(True)\n"
        "print('configparser' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == ["False", "True"]


@pytest.mark.parametrize("name", ["ints", "int from 1", "port >= 1", "one", "text or list", "int >= x", ""])
def test_a_type_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises((KeyError, ValueError)):
        type_named(name)


@all_keys
def test_a_key_is_documented_and_says_why_it_has_no_effect(key: ConfigKey) -> None:
    assert key.doc[0].isupper()
    assert key.doc.endswith(".")
    assert bool(key.why) == (key.level is not Level.HONOURED)
    assert not key.why.endswith(".")


@all_keys
def test_a_default_is_of_its_keys_type_and_is_json(key: ConfigKey) -> None:
    assert key.default is None or key.type.accepts(key.default)
    json.dumps(key.default)


@all_keys
def test_only_keys_of_topologies_are_for_components(key: ConfigKey) -> None:
    assert not key.component or key.name.startswith("topology.")
    assert key.name.startswith(KNOWN_PREFIXES)


OUTSIDE = ["storm.log.dir", "storm.home", "storm.exhibitor.port", "nimbus.reassign", "zmq.threads", "storm.messaging.x"]
"""Keys of Storm's scripts, of its earlier versions, and one that is in a family and no key of any version."""


def test_every_key_of_storm_is_known_and_says_what_it_does_or_why_it_does_nothing() -> None:
    names = [*Path(__file__).with_name("storm_keys.txt").read_text("utf-8").splitlines()[1:], *OUTSIDE]
    assert problems_of(dict.fromkeys(names)) == []
    known = [KEYS.get(name) or family_key(name) for name in names]
    assert [name for name, key in zip(names, known, strict=True) if key is None] == []


@pytest.mark.parametrize("name", ["storm.log.dri", "ui.titel", "topology.debugg", "supervisor.autorizer"])
def test_a_slip_in_one_of_them_is_no_key(name: str) -> None:
    (problem,) = problems_of({name: "any"})
    assert "Did you mean" in problem


def test_no_key_is_in_a_family_by_accident() -> None:
    inside = {name for name in KEYS if name.startswith(tuple(FAMILIES))}
    assert inside == {
        # What Storm has at this key is in the file that the first of them names.
        "drpc.authorizer.acl.filename",
        "drpc.authorizer.acl.strict",
        "storm.blobstore.replication.factor",
        "storm.zookeeper.ssl.enable",
        "storm.zookeeper.ssl.hostnameVerification",
    }


# What Storm 2.8.8 says in its conf/defaults.yaml, written down independently of the registry.
STORM_DEFAULTS = {
    "java.library.path": "/usr/local/lib:/opt/local/lib:/usr/lib:/usr/lib64",
    "nimbus.seeds": ["localhost"],
    "nimbus.thrift.port": 6627,
    "nimbus.task.timeout.secs": 30,
    "nimbus.supervisor.timeout.secs": 60,
    "nimbus.monitor.freq.secs": 10,
    "nimbus.code.sync.freq.secs": 120,
    "nimbus.task.launch.secs": 120,
    "topology.min.replication.count": 1,
    "topology.max.replication.wait.time.sec": 60,
    "storm.nimbus.retry.times": 5,
    "storm.nimbus.retry.interval.millis": 2000,
    "storm.nimbus.retry.intervalceiling.millis": 60000,
    "storm.zookeeper.servers": ["localhost"],
    "storm.zookeeper.port": 2181,
    "storm.zookeeper.root": "/storm",
    "storm.zookeeper.session.timeout": 20000,
    "storm.zookeeper.connection.timeout": 15000,
    "storm.zookeeper.retry.times": 5,
    "storm.zookeeper.retry.interval": 1000,
    "storm.zookeeper.retry.intervalceiling.millis": 30000,
    "supervisor.slots.ports": [6700, 6701, 6702, 6703],
    "supervisor.worker.start.timeout.secs": 120,
    "supervisor.worker.timeout.secs": 30,
    "supervisor.worker.shutdown.sleep.secs": 3,
    "supervisor.monitor.frequency.secs": 3,
    "supervisor.heartbeat.frequency.secs": 5,
    "topology.workers": 1,
    "topology.executor.receive.buffer.size": 32768,
    "topology.transfer.buffer.size": 1000,
    "topology.spout.recvq.skips": 3,
    "topology.acker.executors": None,
    "topology.message.timeout.secs": 30,
    "topology.enable.message.timeouts": True,
    "topology.max.spout.pending": None,
    "topology.max.task.parallelism": None,
    "topology.tasks": None,
    "topology.eventlogger.executors": 0,
    "topology.debug": False,
    "topology.stats.sample.rate": 0.05,
    "topology.builtin.metrics.bucket.size.secs": 60,
    "topology.tick.tuple.freq.secs": None,
    "topology.shellbolt.max.pending": 100,
    "topology.max.error.report.per.interval": 5,
    "topology.error.throttle.interval.secs": 10,
    "topology.priority": 29,
    "topology.component.resources.onheap.memory.mb": 128,
    "topology.component.cpu.pcore.percent": 10,
    "pacemaker.servers": [],
    "pacemaker.port": 6699,
    "pacemaker.max.threads": 50,
    "pacemaker.auth.method": "NONE",
    "pacemaker.thrift.message.size.max": 10485760,
    "ui.host": "0.0.0.0",
    "ui.port": 8080,
    "ui.actions.enabled": True,
    "ui.pagination": 20,
}


@pytest.mark.parametrize("name", STORM_DEFAULTS)
def test_defaults_are_storms(name: str) -> None:
    assert default_of(name) == STORM_DEFAULTS[name]


OWN_DEFAULTS = {
    "nimbus.auth.digest.file": None,
    "nimbus.auth.token.file": None,
    "nimbus.bind.address": "127.0.0.1",
    "storm.codedistributor.location": None,
    "topology.checkpoint.dir": None,
    "topology.fail.fast": False,
    "topology.task.stall.secs": 60,
    "topology.partitions": None,
    "topology.spout.log.max.bytes": 268435456,
    "topology.durability": None,
    "topology.batch.max.tuples": 100000,
    "topology.profile": None,
}


@pytest.mark.parametrize("name", OWN_DEFAULTS)
def test_own_keys_say_that_they_are_not_storms(name: str) -> None:
    key = KEYS[name]
    assert key.default == OWN_DEFAULTS[name]
    assert key.level is not Level.ACCEPTED
    assert "Not a key of Storm's." in key.doc


SET_BY_THE_SYSTEM = {"topology.name", "storm.id"}


def test_the_level_of_a_key_is_what_the_code_does() -> None:
    # The profile is read by `effective_conf`, which others call.
    package = Path(storm_on_spark.__file__).parent
    code = "".join(
        path.read_text("utf-8")
        for part in (
            "windowing",
            "trident",
            "launch",
            "plan",
            "runtime",
            "multilang",
            "spark",
            "cluster",
            "drpc",
            "xd",
            "web",
        )
        for path in package.glob(f"{part}/**/*.py")
    )
    constants = {value: name for name, value in vars(ConfigNames).items() if not name.startswith("_")}
    said = set(re.findall(r'"([\w.-]+)"', code)) | {f"Config.{name}" for name in re.findall(r"\bConfig\.(\w+)", code)}
    read = {name for name in KEYS if {name, f"Config.{constants[name]}"} & said}
    honoured = {name for name, key in KEYS.items() if key.level is Level.HONOURED}
    assert sorted(honoured - read - SET_BY_THE_SYSTEM - {Config.TOPOLOGY_PROFILE}) == [], (
        "says that it works, but nothing reads it"
    )
    assert sorted(read - honoured) == [], "is read, but says that it has no effect"


def test_default_of_an_unknown_key() -> None:
    with pytest.raises(ConfigError, match=r'^unknown key "my.key".$'):
        default_of("my.key")
    with pytest.raises(ConfigError, match=r'unknown key "topology.debgu". Did you mean "topology.debug"\?'):
        default_of("topology.debgu")


# --- checking -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("topology.message.timeout.secs", "30", "an int of at least 1, not '30' (str)"),
        ("topology.message.timeout.secs", 0, "an int of at least 1, not 0 (int)"),
        ("topology.message.timeout.secs", 30.0, "an int of at least 1, not 30.0 (float)"),
        ("topology.message.timeout.secs", True, "an int of at least 1, not True (bool)"),
        ("topology.acker.executors", -1, "an int of at least 0, not -1 (int)"),
        ("topology.debug", 1, "True or False, not 1 (int)"),
        ("topology.checkpoint.dir", 3, "a string, not 3 (int)"),
        ("topology.profile", "fast", 'one of "realtime", "latency", "throughput", not \'fast\' (str)'),
        ("topology.auto.task.hooks", "a.B", "a list of strings, not 'a.B' (str)"),
        ("topology.auto.task.hooks", ["a.B", 3], "a list of strings, not ['a.B', 3] (list)"),
        ("topology.stats.sample.rate", 1.5, "a number from 0 to 1, not 1.5 (float)"),
        ("topology.stats.sample.rate", float("nan"), "a number from 0 to 1, not nan (float)"),
        (
            "topology.environment",
            {"A": 1},
            "a mapping from strings, each value a string, not {'A': 1} (dict)",
        ),
        ("topology.environment", ["A"], "a mapping from strings, each value a string, not ['A'] (list)"),
        ("ui.port", 70000, "an int from 1 to 65535, not 70000 (int)"),
        (
            "supervisor.slots.ports",
            [6700, 6700],
            "a list of different ports (1 to 65535), not [6700, 6700] (list)",
        ),
        ("topology.classpath", 3, "a string or a list of strings, not 3 (int)"),
        ("topology.metrics.consumer.register", {}, "a list, not {} (dict)"),
        ("topology.kryo.register", "x", "a list or a mapping, not 'x' (str)"),
        ("supervisor.resources.map", [], "a mapping, not [] (list)"),
    ],
)
def test_wrong_values_say_what_is_right(name: str, value: object, expected: str) -> None:
    assert problems_of({name: value}) == [f"{name} must be {expected}"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("topology.acker.executors", 0),
        ("topology.stats.sample.rate", 1),
        ("topology.auto.task.hooks", ["a.B"]),
        ("topology.auto.task.hooks", ()),
        ("topology.environment", {"A": "1"}),
        ("topology.classpath", "x"),
        ("topology.classpath", ["x"]),
        ("topology.kryo.register", [{"a": "b"}, "c"]),
        ("topology.blobstore.map", {"key": {"localname": "file"}}),
        ("topology.profile", "latency"),
        ("topology.max.replication.wait.time.sec", -1),
        ("supervisor.slots.ports", [6700]),
        ("supervisor.resources.map", {"gpu.count": 2}),
        ("topology.component.resources.map", {"gpu.count": 2.0}),
    ],
)
def test_right_values(name: str, value: object) -> None:
    assert problems_of({name: value}) == []


@given(any_key)
def test_none_is_always_right(name: str) -> None:
    validate_conf({name: None})


@given(user_key, any_value)
def test_keys_of_users_pass(name: str, value: object) -> None:
    validate_conf({name: value})
    validate_conf({name: value}, component=True)


@given(any_key, st.data())
def test_a_slip_of_the_pen_in_a_known_key_is_found(name: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(name.index(".") + 1, len(name) - 1))
    slip = name[:position] + name[position + 1 :]
    if slip in KEYS or slip.startswith(tuple(FAMILIES)):
        return
    (problem,) = problems_of({slip: None})
    assert problem.startswith(f'unknown key "{slip}". Did you mean "')


def test_a_key_that_is_like_none_says_whose_names_these_are() -> None:
    assert problems_of({"topology.zzz": 1}) == [
        'unknown key "topology.zzz". Keys that start with "topology." are Storm\'s; call your own differently.'
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("toplogy.debug", "topology.debug"),
        ("topologie.workers", "topology.workers"),
        ("supervisior.enable", "supervisor.enable"),
        ("topology.max.pending", "topology.max.spout.pending"),
        ("topology.message.timeout", "topology.message.timeout.secs"),
        ("topology.max_spout_pending", "topology.max.spout.pending"),
    ],
)
def test_what_was_meant(name: str, meant: str) -> None:
    assert problems_of({name: 1}) == [f'unknown key "{name}". Did you mean "{meant}"?']


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nimbus.host", 'Its name is "nimbus.seeds" now, and its value a list of strings.'),
        (
            "nimbus.min.replication.count",
            'Its name is "topology.min.replication.count" now, and its value an int of at least 1.',
        ),
        ("pacemaker.host", 'Its name is "pacemaker.servers" now, and its value a list of strings.'),
        ("topology.receiver.buffer.size", "Storm has dropped it, and no other key took its place: remove it."),
        ("topology.disruptor.batch.size", "Storm has dropped it, and no other key took its place: remove it."),
        ("topology.disruptor.wait.strategy", "Storm has dropped it, and no other key took its place: remove it."),
        (
            "topology.disable.loadaware",
            'Its name is "topology.disable.loadaware.messaging" now, and its value True or False.',
        ),
        ("topology.ackers", 'Its name is "topology.acker.executors" now, and its value an int of at least 0.'),
    ],
)
def test_a_name_of_an_earlier_storm_leads_to_the_name_since(name: str, problem: str) -> None:
    assert problems_of({name: 1}) == [f'unknown key "{name}". {problem}']


@pytest.mark.parametrize(
    "name",
    ["nimbus.thrift.host", "storm.zookeeper.host", "topology.acker.tasks", "storm.cluster.host", "topology.name.x"],
)
def test_a_name_with_another_word_is_not_taken_for_a_key(name: str) -> None:
    (problem,) = problems_of({name: 1})
    assert "Did you mean" not in problem


def test_the_guides_name_of_the_ackers() -> None:
    assert Config.TOPOLOGY_ACKERS == "topology.acker.executors"


class Order:
    pass


def test_registered_serializations_add_up() -> None:
    conf = Config({Config.TOPOLOGY_KRYO_REGISTER: {"a.A": "a.S"}})
    conf.register_serialization(Order)
    conf.register_serialization(Order, "b.S")
    name = f"{__name__}.Order"
    assert conf == {"topology.kryo.register": [{"a.A": "a.S"}, name, {name: "b.S"}]}
    conf.validate()


@pytest.mark.parametrize("arguments", [(7,), ("",), ("a.A", 7)])
def test_only_classes_and_names_are_registered(arguments: Any) -> None:
    conf = Config()
    with pytest.raises(ConfigError, match=r"register_serialization takes a (class|serializer) or its name, not"):
        conf.register_serialization(*arguments)
    assert conf == {}


def test_a_registration_does_not_hide_a_wrong_value() -> None:
    with pytest.raises(ConfigError, match=r"topology\.kryo\.register must be a list or a mapping"):
        Config({Config.TOPOLOGY_KRYO_REGISTER: 7}).register_serialization("a.A")


@pytest.mark.parametrize("name", ["toplogy.mine", "topo.debug", "debug", "", ".", "topology"])
def test_what_only_looks_like_one_of_storms_passes(name: str) -> None:
    assert problems_of({name: object()}) == []


@pytest.mark.parametrize("name", ["storm.cgroup.resources", "ui.https.port", "storm.messaging.netty.buffer_size"])
def test_keys_of_families_pass(name: str) -> None:
    assert name not in KEYS
    validate_conf({name: object()})


@pytest.mark.parametrize("name", [3, None, ("topology.debug",)])
def test_keys_are_strings(name: object) -> None:
    (problem,) = problems_of({name: 1})  # type: ignore[dict-item]
    assert problem.startswith("a key must be a string, not ")


def test_all_problems_are_named_and_each_says_where() -> None:
    conf = {"topology.debug": "no", "my.key": object(), "topology.worker": 1, "ui.port": 0}
    with pytest.raises(ConfigError) as caught:
        validate_conf(conf, 'topology "words"')
    assert str(caught.value).splitlines() == [
        "topology \"words\": topology.debug must be True or False, not 'no' (str)",
        'topology "words": unknown key "topology.worker". Did you mean "topology.workers"?',
        'topology "words": ui.port must be an int from 1 to 65535, not 0 (int)',
    ]
    assert caught.value.key == "topology.debug"


@all_keys
def test_a_component_sets_only_what_is_its_own(key: ConfigKey) -> None:
    assert (problems_of({key.name: None}, component=True) == []) == key.component


def test_types_have_names_to_read() -> None:
    assert str(integer()) == "an int"
    assert str(number(0.5)) == "a number of at least 0.5"
    assert str(mapping(choice("a"))) == 'a mapping from strings, each value one of "a"'
    assert repr(PORTS) == "ConfigType(name='a list of different ports (1 to 65535)')"
    assert not TEXT_OR_TEXTS.accepts([b"x"])
    assert integer(-5).accepts(-5)


# --- Config -------------------------------------------------------------------------------------------------


def test_config_is_a_dict_that_pickles() -> None:
    conf = Config({Config.TOPOLOGY_DEBUG: True}, my_key=1)
    again = pickle.loads(pickle.dumps(conf))
    assert again == conf == {"topology.debug": True, "my_key": 1}
    assert type(again) is Config
    assert repr(conf) == "Config({'topology.debug': True, 'my_key': 1})"
    assert json.loads(json.dumps(conf)) == conf


SETTERS = [
    ("set_debug", True, Config.TOPOLOGY_DEBUG),
    ("set_environment", {"A": "1"}, Config.TOPOLOGY_ENVIRONMENT),
    ("set_max_spout_pending", 10, Config.TOPOLOGY_MAX_SPOUT_PENDING),
    ("set_max_task_parallelism", 4, Config.TOPOLOGY_MAX_TASK_PARALLELISM),
    ("set_message_timeout_secs", 60, Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS),
    ("set_num_ackers", 0, Config.TOPOLOGY_ACKER_EXECUTORS),
    ("set_num_event_loggers", 1, Config.TOPOLOGY_EVENTLOGGER_EXECUTORS),
    ("set_num_workers", 2, Config.TOPOLOGY_WORKERS),
    ("set_stats_sample_rate", 0.5, Config.TOPOLOGY_STATS_SAMPLE_RATE),
    ("set_topology_priority", 3, Config.TOPOLOGY_PRIORITY),
    ("set_topology_version", "1.2", Config.TOPOLOGY_VERSION),
]


def test_every_setter_is_tested() -> None:
    assert [name for name in dir(Config) if name.startswith("set_")] == [name for name, _, _ in SETTERS]


@pytest.mark.parametrize(("setter", "value", "key"), SETTERS)
def test_setters(setter: str, value: object, key: str) -> None:
    conf = Config()
    getattr(conf, setter)(value)
    assert conf == {key: value}
    conf.validate()


def test_setters_refuse_at_once() -> None:
    conf = Config()
    with pytest.raises(ConfigError, match=r"^topology.workers must be an int of at least 1, not 0"):
        conf.set_num_workers(0)
    assert conf == {}


def test_validate() -> None:
    with pytest.raises(ConfigError, match="unknown key"):
        Config({"topology.debugg": True}).validate()


# --- merging ------------------------------------------------------------------------------------------------

confs = st.dictionaries(st.sampled_from(sorted(KEYS)[:20]) | st.sampled_from(["my.a", "my.b"]), any_value)


@given(confs, confs)
def test_the_component_lies_over_the_topology_and_both_over_the_defaults(topology, component) -> None:
    merged = effective_conf(topology, component)
    for name in {*KEYS, *topology, *component}:
        given_value = component[name] if name in component else topology.get(name)
        if name in KEYS and given_value is None:
            expected = KEYS[name].default
            assert merged.get(name, expected) == expected
        elif name in topology or name in component:
            assert merged[name] is given_value


@given(confs)
def test_every_topology_key_is_there(topology) -> None:
    merged = effective_conf(topology)
    assert {name for name in KEYS if name.startswith("topology.")} <= set(merged)
    assert set(merged) <= {*KEYS, *topology}


@given(confs, confs)
def test_merging_does_not_touch_what_is_merged(topology, component) -> None:
    before = dict(topology), dict(component)
    effective_conf(topology, component)["my.a"] = object()
    assert (topology, component) == before


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_sets_what_nobody_else_does(profile: str) -> None:
    values = PROFILES[profile]
    assert all(problems_of({key: value}) == [] for key, value in values.items())
    conf = effective_conf({Config.TOPOLOGY_PROFILE: profile})
    assert {key: conf[key] for key in values} == dict(values)
    assert effective_conf(conf) == conf
    for key in values:
        mine = {Config.TOPOLOGY_PROFILE: profile, key: 7}
        assert effective_conf(mine)[key] == 7
        assert effective_conf({**mine, key: None})[key] == values[key], "None means the default"
