"""Sparkapp: a step that runs a Spark application by spark-submit."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

from storm_on_spark.spark.session.jvm.java import require_java
from storm_on_spark.xd.modules.declaration import ModuleDeclaration, Option
from storm_on_spark.xd.modules.jobs.checks import a_master, a_path
from storm_on_spark.xd.modules.jobs.context import StepContext

_SETTING: Final = re.compile(r"spark\.[A-Za-z0-9_.-]+=[^\0]*")


class AppFailedError(RuntimeError):
    """An application that ended with another exit code than 0."""

    def __init__(self, app: str, code: int) -> None:
        super().__init__(f"{app} ended with exit code {code}")
        self.code = code


def sparkapp(
    context: StepContext, app_jar: str, main_class: str, program_args: str, master: str, conf: str, files: str
) -> None:
    """Runs an application, and waits for its end. Its output goes to the log of the step.

    Raises:
        SetupError: no suitable Java was found.
        AppFailedError: it failed.
    """
    import pyspark

    require_java()
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--name", f"{context.job}.{context.step}"]
    for name, value in (("--class", main_class), ("--master", master), ("--files", files)):
        if value:
            command += [name, value]
    for setting in _settings(conf):
        command += ["--conf", setting]
    # Each argument stands by itself: no shell reads them.
    done = subprocess.run(  # a list of arguments
        [*command, app_jar, *shlex.split(program_args)],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
        check=False,
    )
    if done.returncode:
        raise AppFailedError(app_jar, done.returncode)


def _settings(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _an_app(text: str) -> None:
    a_path(text)
    if not text.endswith((".py", ".jar")) or text.startswith("-"):
        raise ValueError(f"Expected the path of a Python file or a jar, got {text!r:.100}")


def _a_class(text: str) -> None:
    if text and not re.fullmatch(r"[A-Za-z_$][A-Za-z0-9_.$]{0,499}", text):
        raise ValueError(f"Expected the name of a class, got {text!r:.100}")


def _arguments(text: str) -> None:
    if "\0" in text:
        raise ValueError("Expected arguments without a null character")
    try:
        shlex.split(text)
    except ValueError as error:
        raise ValueError(f"Expected arguments as a shell has them, got {text!r:.100}: {error}") from None


def _spark_settings(text: str) -> None:
    for part in _settings(text):
        if not _SETTING.fullmatch(part):
            raise ValueError(f"Expected settings such as spark.executor.memory=1g, got {part!r:.100}")


def _a_list(text: str) -> None:
    if text.startswith("-") or "\0" in text:
        raise ValueError(f"Expected paths with commas between them, got {text!r:.100}")


JOB: Final = ModuleDeclaration(
    "job",
    "sparkapp",
    "Runs a Spark application by spark-submit.",
    sparkapp,
    (
        Option("appJar", "text", None, "The Python file or jar.", check=_an_app),
        Option("mainClass", "text", "", "The main class, for a jar.", check=_a_class),
        Option("programArgs", "text", "", "Its arguments; one with spaces needs quotes.", check=_arguments),
        Option("master", "text", "local[*]", "Spark's master.", check=a_master),
        Option("conf", "text", "", "Settings of Spark, with commas between them.", check=_spark_settings),
        Option("files", "text", "", "Files for its working directory, with commas between them.", check=_a_list),
    ),
)
