"""Properties and parameters as a form has them."""

from __future__ import annotations

from storm_on_spark.api.text.lines import lines_of
from storm_on_spark.web.model import RefusedError
from storm_on_spark.xd.admin.rest.schemas import MAXIMUM_PROPERTIES


def properties_of(text: str) -> dict[str, str]:
    r"""Returns the properties of a deployment or the parameters of a launch, one a line.

    Raises:
        RefusedError: a line is not a property, or there twice.

    Example:
        >>> properties_of("module.log.count=2\r\n\r\nmodule.log.criteria = groups.contains('a,b')")
        {'module.log.count': '2', 'module.log.criteria': "groups.contains('a,b')"}
    """
    found: dict[str, str] = {}
    for line in lines_of(text.replace("\r\n", "\n").strip()):
        key, equals, value = (part.strip() for part in line.partition("="))
        if not line.strip():
            continue
        if not equals or not key:
            raise RefusedError(f"a property is one line such as module.log.count=2, not {line[:80]!r}")
        if key in found:
            raise RefusedError(f"{key[:80]!r} is there twice")
        found[key] = value
    if len(found) > MAXIMUM_PROPERTIES:
        raise RefusedError(f"at most {MAXIMUM_PROPERTIES:,} properties, not {len(found):,}")
    return found
