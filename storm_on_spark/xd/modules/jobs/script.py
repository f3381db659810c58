"""Script: a step made of a Python file, with a function that gets a SparkSession."""

from __future__ import annotations

from typing import Any, Final

from storm_on_spark.xd.modules.declaration import ModuleDeclaration, Option, OptionError
from storm_on_spark.xd.modules.jobs.checks import a_master, a_python_file, a_word
from storm_on_spark.xd.modules.jobs.context import StepContext
from storm_on_spark.xd.modules.python_files import checksum, executed, read_python


def script(context: StepContext, location: str, function: str, sha256: str, master: str) -> object:
    """Calls the function of a file with a SparkSession and the parameters of the launch, and returns what it returns.

    Raises:
        PythonFileError: the file can't be read.
        OptionError: it has another checksum, or no such function.
        Exception: whatever the function raises.
    """
    source = read_python(location)
    if sha256 and checksum(source) != sha256:
        raise OptionError(f"Expected {location} to have the SHA-256 {sha256}, got {checksum(source)}")
    found: Any = getattr(executed(source, location), function, None)
    if not callable(found):
        raise OptionError(f"{location}: expected a function {function}(spark, parameters)")
    return found(context.session(master), dict(context.parameters))


JOB: Final = ModuleDeclaration(
    "job",
    "script",
    "Calls a function run(spark, parameters) of a Python file, with a SparkSession and the parameters of the launch.",
    script,
    (
        Option("location", "text", None, "The file; it has to be on the container's machine.", check=a_python_file),
        Option("function", "text", "run", "The function.", check=a_word),
        Option("sha256", "text", "", "The file's expected SHA-256; empty for any."),
        Option("master", "text", "", "Spark's master; empty for this machine.", check=a_master),
    ),
)
