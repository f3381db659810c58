"""A session that can't run topologies is refused in a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from storm_on_spark import TopologyBuilder, compile_topology
from storm_on_spark.api.errors import SetupError
from storm_on_spark.spark.session.settings.classic import require_classic, require_no_remote
from storm_on_spark.testing import ListSpout


class Context:
    """What `sparkContext` is where the platform lets this process at the JVM."""

    _jvm = object()
    defaultParallelism = 2


class Shared:
    """A session with shared access: the JVM is there, but calls are forbidden."""

    class sparkContext:
        _jvm = object()

        @property
        def defaultParallelism(self) -> int:
            raise RuntimeError("py4j.security.Py4JSecurityException: Method is not allowed\n  at x")

    sparkContext = sparkContext()  # type: ignore[assignment,misc]


class Serverless:
    """A session without a context."""

    @property
    def sparkContext(self) -> Any:
        raise NotImplementedError("sparkContext is not supported on serverless compute.")


def session_of_connect() -> object:
    return type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()


@pytest.mark.parametrize(
    ("session", "said"),
    [
        (session_of_connect(), "given one of Spark Connect"),
        (Shared(), "shared access"),
        (Serverless(), "sparkContext is not supported on serverless compute"),
        (None, "does not allow that"),
    ],
)
def test_a_session_that_cannot_run_topologies_is_refused_in_one_sentence(session: object, said: str) -> None:
    with pytest.raises(SetupError, match=said) as refused:
        require_classic(session)
    text = str(refused.value)
    assert "classic SparkSession" in text
    assert "\n" not in text


@pytest.mark.parametrize("form", ["text", "spark"])
def test_explain_takes_only_a_session_that_can_run_topologies(form: Any) -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout(["storm"], fields=["word"]))
    compiled = compile_topology(builder.create_topology())
    with pytest.raises(SetupError, match="Spark Connect"):
        compiled.explain(form, session_of_connect())  # type: ignore[arg-type]


def test_a_classic_session_is_taken() -> None:
    require_classic(type("Session", (), {"sparkContext": Context()})())


@pytest.mark.parametrize("name", ["SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"])
def test_no_session_is_started_where_pyspark_would_connect(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "sc://localhost")
    with pytest.raises(SetupError, match=f"{name} is set"):
        require_no_remote()
