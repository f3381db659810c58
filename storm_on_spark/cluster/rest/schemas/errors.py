"""Errors of components."""

from __future__ import annotations

from storm_on_spark.cluster.http.views import View
from storm_on_spark.cluster.rest.schemas.page import Page


class ErrorFields(View, frozen=True, kw_only=True):
    """The newest error of a component; empty without one."""

    last_error: str = ""
    error_host: str = ""
    error_port: int | None = None
    error_time: int | None = None
    error_lapsed_secs: int | None = None
    error_worker_log_link: str = ""
    error_count: int = 0
    """Ours, as those below: see `ComponentError`."""
    error_first_time: int | None = None
    error_before_restart: bool = False
    error_input: str = ""


class ComponentError(View, frozen=True, kw_only=True):
    """An error of a component: the last of equal ones."""

    error: str
    error_time: int
    error_host: str
    error_port: int
    error_lapsed_secs: int
    error_worker_log_link: str = ""
    task: int
    """Ours."""
    trace: str = ""
    """Ours: the traceback with the frames of the user's own code; empty where there is none."""
    file: str = ""
    """Ours: the file of the innermost of these frames."""
    line: int | None = None
    """Ours: its line."""
    input: str = ""
    """Ours: the tuple that was executed, cut to 200 characters and without secrets; empty where that is not known."""
    count: int = 1
    """Ours: how many equal errors there were."""
    first_time: int
    """Ours: when there was the first of them."""
    before_restart: bool = False
    """Ours: whether the driver has been started since."""


class TopologyErrors(Page, frozen=True, kw_only=True):
    """`topology/:id/errors`, ours: errors by component, oldest first; equal ones are one."""

    topology_id: str
    errors: dict[str, tuple[ComponentError, ...]]
