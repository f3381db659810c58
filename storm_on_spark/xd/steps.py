"""The steps of a job: each with its module, and its options filled with the parameters of a launch."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from storm_on_spark.api.errors import StormError
from storm_on_spark.xd.dsl import Job
from storm_on_spark.xd.modules.local_registry import LocalRegistry
from storm_on_spark.xd.parts import Part, step_parts

_PARAMETER: Final = re.compile(r"""#\{jobParameters\[(?:'([^']{1,200})'|"([^"]{1,200})")\]\}""")


class ParameterError(StormError, ValueError):
    """A parameter that a launch lacks, or that is not a valid value of an option."""


def check_steps(
    job: Job, definition: str, registry: LocalRegistry, parameters: Mapping[str, str] | None = None
) -> list[Part]:
    """Returns the steps of a job, if it can be created, or launched.

    An option may have `#{jobParameters['day']}` in its value; a launch fills it.

    Args:
        job: the parsed job.
        definition: the text that it was parsed from, for errors.
        registry: the modules.
        parameters: of a launch; None before a launch.

    Raises:
        DslError: a module or an option is unknown, or an option has an invalid value.
        ParameterError: a parameter is missing.

    Example:
        >>> from storm_on_spark.xd.dsl import parse_job
        >>> text = "timestampfile --directory=/data/#{jobParameters['day']}"
        >>> (step,) = check_steps(parse_job(text, "stamp"), text, LocalRegistry(), {"day": "1"})
        >>> step.options
        {'directory': '/data/1'}
    """
    found: list[Part] = []
    for part in step_parts(job, definition, registry):
        later = [name for name, text in part.options.items() if _PARAMETER.search(text)]
        if parameters is None:
            part.values(job.name or "job", definition, later)
            found.append(part)
            continue
        filled = replace(part, options=_filled(part, parameters))
        filled.values(job.name or "job", definition)
        found.append(filled)
    return found


def _filled(part: Part, parameters: Mapping[str, str]) -> dict[str, str]:
    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in parameters:
            given = ", ".join(sorted(parameters)[:20]) or "none"
            raise ParameterError(f"Expected the parameter {name!r}, which step {part.label} needs; given: {given}")
        return parameters[name]

    return {name: _PARAMETER.sub(value, text) for name, text in part.options.items()}


def bound(part: Part, job: str, definition: str) -> Callable[[Any], object]:
    """Returns a step as a function of its context.

    Args:
        part: the step, with its options filled.
        job: the job's name.
        definition: its text, for errors.

    Raises:
        DslError: an option can't have its value.
    """
    values = part.values(job, definition)
    return lambda context: part.declaration.component(context, **values)
