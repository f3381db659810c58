"""What the form about samples asks for."""

from __future__ import annotations

from collections.abc import Mapping

from storm_on_spark.runtime.samples.switch import checked_percent
from storm_on_spark.web.model import RefusedError


def wanted_sample(options: Mapping[str, str]) -> tuple[str, float]:
    """Returns component and percentage; the component is empty for all.

    Raises:
        RefusedError: that is not a percentage.

    Example:
        >>> wanted_sample({"component": "count", "percent": "5"})
        ('count', 5.0)
    """
    text = options.get("percent", "").strip()
    try:
        return options.get("component", ""), checked_percent(float(text[:20]))
    except ValueError:
        raise RefusedError(f"the share must be a number from 0 to 100, not {text[:80]!r}") from None


def sample_told(component: str, percent: float) -> str:
    """Returns the same in words.

    Example:
        >>> sample_told("", 10.0)
        'sample 10 % of the tuples'
    """
    return f"sample {percent:g} % of the tuples" + (f" of {component}" if component else "")
