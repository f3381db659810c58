"""How a ZooKeeper server's JVM is started from the jars that pyspark ships."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from storm_on_spark.api.errors import SetupError

__all__ = ["class_path", "find_java", "server_command"]

_JARS: Final = (
    "zookeeper-*.jar",
    "slf4j-api-*.jar",
    "log4j-api-*.jar",
    "log4j-core-*.jar",
    "log4j-slf4j2-impl-*.jar",
    "metrics-core-*.jar",
    "snappy-java-*.jar",
    "netty-*.jar",
)
"""What the server needs; a class path of all of pyspark's jars takes twice as long to start."""

_LOG4J: Final = """\
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c{{1}} %m%n
appender.file.policies.type = SizeBasedTriggeringPolicy
appender.file.policies.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


def server_command(main: str, config: Path, log: Path, jvm_options: tuple[str, ...] = ()) -> list[str]:
    """Returns the command that runs a server; writes its log configuration beside `config`.

    Args:
        main: name of the main class.
        config: the server's `zoo.cfg`.
        log: the file it logs to.
        jvm_options: more of them.

    Raises:
        SetupError: there is no Java, or pyspark has no ZooKeeper.
    """
    log4j = config.with_name("log4j2.properties")
    log4j.write_text(_LOG4J.format(log=log), "utf-8")
    return [
        find_java(),
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        # Without a file under the system's temporary folder, which a killed JVM leaves behind.
        "-XX:-UsePerfData",
        "-Djava.awt.headless=true",
        "-Dzookeeper.admin.enableServer=false",
        f"-Dlog4j2.configurationFile={log4j}",
        *jvm_options,
        "-cp",
        class_path(),
        main,
        str(config),
    ]


def class_path() -> str:
    """Returns the class path of a ZooKeeper server.

    Raises:
        SetupError: pyspark has no ZooKeeper.
    """
    import pyspark

    folder = Path(pyspark.__file__).parent / "jars"
    jars = sorted(jar for pattern in _JARS for jar in folder.glob(pattern))
    if not any(jar.name.startswith("zookeeper-") for jar in jars):
        raise SetupError(f"no ZooKeeper among pyspark's jars in {folder}")
    return os.pathsep.join(map(str, jars))


def find_java() -> str:
    """Returns the Java program: that of JAVA_HOME, else the first on the path.

    Raises:
        SetupError: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        raise SetupError(f"no Java program under JAVA_HOME={home}" if home else "no Java program on the PATH")
    return java
