"""Tracebacks of user code: only the frames in user code, and of bounded size.

A bolt's frames come after some twenty frames of PySpark and of this package, which don't help a user. They are left
out here; logs and `--debug` have the whole traceback.
"""

from __future__ import annotations

import linecache
import os
import re
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import FrameType

MOST_CHARS = 4000
"""The longest trace in characters: heartbeat records contain traces, and terminals show them."""
_MOST_LINE = 400
_TRANSPORT = ("pyspark", "py4j", "cloudpickle", "importlib")
"""Packages besides this one whose frames are between Spark and user code."""
_LIBRARIES = ("click", "google", "grpc", "httpx", "kazoo", "msgspec", "numpy", "pandas", "pyarrow", "rich", "yaml")
"""Packages that this one calls. Their frames, and those of Python's modules, count if user code called them."""
_STANDARD = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120 # compared as text, as all here
_OURS = str(Path(__file__).parents[2]) + os.sep
_SHIPPED = tuple(os.path.join(_OURS, name) + os.sep for name in ("examples", "cli" + os.sep + "templates"))  # noqa: PTH118 # a path in a zip file is no file
"""Parts of this package that users copy: their code counts as the user's."""
_INSTALLED = f"{os.sep}lib{os.sep}python3"
"""Part of the path of every installed package, on any machine."""
_FRAME = re.compile(r'^([ |+]*)File "([^"\n]+)", line (\d+)(?:, in [^\n]+)?$')


def own_trace(error: BaseException) -> str:
    """Returns the traceback of `error` as Python prints it, with the frames in user code only.

    Chained exceptions and the members of groups are included. Frames of this package and of Spark are left out. If
    no frame remains, the result is empty, because then the error's text is enough.

    Example:
        >>> try:
        ...     {}["wrod"]
        ... except KeyError as error:
        ...     print(own_trace(error).splitlines()[-1])
        KeyError: 'wrod'
    """
    try:
        found = traceback.TracebackException(type(error), error, error.__traceback__, lookup_lines=False, compact=True)
        return bounded("".join(found.format())) if _keep_own(found) else ""
    except Exception:  # the error's methods may raise anything
        return ""


def trace_of(error: BaseException) -> str:
    """Returns the frames of an error in user code: those that it carries, or else those of its cause."""
    carried = getattr(error, "own_trace", "")
    if isinstance(carried, str) and carried:
        return with_sources(carried)
    return own_trace(error.__cause__ or error)


def whole_trace(error: BaseException) -> str:
    """Returns the whole traceback of `error`."""
    try:
        return "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except Exception:  # the error's methods may raise anything
        return f"{type(error).__name__}\n"


def summary(error: BaseException) -> str:
    """Returns type and text of `error`, even if its `__str__` raises.

    Example:
        >>> summary(KeyError("wrod"))
        "KeyError: 'wrod'"
    """
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__}: <its text can't be printed>"


def raised_at(error: BaseException) -> tuple[str, int] | None:
    """Returns file and line of the innermost frame of `error` in any code; cheaper than a traceback."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else (trace.tb_frame.f_code.co_filename, trace.tb_lineno)


def reported(error: BaseException) -> str:
    """Returns the trace of a reported error: from where it was raised, or else from where it is reported.

    Call it from the function that user code calls.
    """
    if error.__traceback__ is not None:
        return own_trace(error)
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 # as logging does
    while frame is not None and not is_own(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return ""
    stack = traceback.StackSummary.extract([(frame, frame.f_lineno)])
    return bounded("".join(["Traceback (reported, not raised):\n", *stack.format(), summary(error), "\n"]))


def is_own(file: str, carriers: tuple[str, ...] | None = None) -> bool:
    """Returns whether a file belongs to the user, and not to this package or a library that calls user code.

    Args:
        file: the file with the code.
        carriers: the result of `_transport`, to reuse it for many files.
    """
    if file.startswith("<frozen "):
        return False
    if file.startswith(_OURS):
        return file.startswith(_SHIPPED)
    return not file.startswith(_transport() if carriers is None else carriers)


def own_part(trace: str) -> str:
    r"""Returns the part that `own_trace` would keep of the last traceback in a text, such as an error of Spark.

    Example:
        >>> text = 'Traceback (most recent call last):\n  File "/b.py", line 3, in f\n    g()\nKeyError: 1\n\tat java'
        >>> print(own_part(text), end="")
        Traceback (most recent call last):
          File "/b.py", line 3, in f
            g()
        KeyError: 1
    """
    _, headline, block = trace.rpartition("Traceback (most recent call last):\n")
    kept, keeps, found = [headline], True, False
    for line in block.splitlines():
        frame = _FRAME.match(line)
        if frame is not None:
            keeps = is_own(frame[2])
            found |= keeps
        elif not line.startswith(" "):
            kept.append(f"{line}\n")
            break
        if keeps:
            kept.append(f"{line}\n")
    return bounded("".join(kept)) if found else ""


def location(trace: str) -> tuple[str, int] | None:
    r"""Returns file and line of the innermost frame in a result of `own_trace`.

    Example:
        >>> location('Traceback (most recent call last):\n  File "/home/u/jobs.py", line 12, in execute\nKeyError: 1')
        ('/home/u/jobs.py', 12)
    """
    frames = [frame for line in reversed(trace.splitlines()) if (frame := _FRAME.match(line))]
    # For a frame of a library, the user's call into that library counts.
    frames.sort(key=lambda frame: _INSTALLED in frame[2])
    return (frames[0][2], int(frames[0][3])) if frames else None


def with_sources(trace: str) -> str:
    """Adds missing source lines that only this process can read, such as the cells of a notebook."""
    lines = trace.splitlines()
    found: list[str] = []
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        found.append(line)
        frame = _FRAME.match(line)
        if frame is not None and not following.startswith(f"{frame[1]}  "):
            source = linecache.getline(frame[2], int(frame[3])).strip()
            if source:
                found.append(f"{frame[1]}  {source}")
    return bounded("".join(f"{line}\n" for line in found))


def bounded(text: str, most: int = MOST_CHARS) -> str:
    r"""Returns `text`; if it is too long, its beginning and more of its end.

    Example:
        >>> bounded("1\n2\n3\n4\n5\n6\n7\n8\n9\n", most=12)
        '1\n... 5 lines ...\n7\n8\n9\n'
    """
    if len(text) <= most:
        return text
    lines = [line if len(line) <= _MOST_LINE else f"{line[:_MOST_LINE]}..." for line in text.splitlines()]
    head, tail, size = 0, 0, 0
    while head + tail < len(lines):
        # Two lines of the end for each line of the beginning.
        ahead = 2 * head < tail
        line = lines[head] if ahead else lines[len(lines) - 1 - tail]
        size += len(line) + 1
        if size > most * 2 // 3:
            break
        head, tail = head + ahead, tail + (not ahead)
    left_out = len(lines) - head - tail
    cut = [f"... {left_out} lines ..."] if left_out else []
    return "".join(f"{line}\n" for line in [*lines[:head], *cut, *lines[len(lines) - tail :]])


def _own_frames(stack: Sequence[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    first = next((number for number, frame in enumerate(stack) if frame.filename.startswith(_OURS)), 0)
    carriers = _transport()
    found = [frame for frame in stack[first:] if is_own(frame.filename, carriers)]
    libraries = _folders(_LIBRARIES)
    while found and (
        found[0].filename.startswith(libraries)
        or (found[0].filename.startswith(_STANDARD) and f"{os.sep}site-packages{os.sep}" not in found[0].filename)
    ):
        del found[0]
    return found


def _transport() -> tuple[str, ...]:
    return _folders(_TRANSPORT)


def _folders(names: Iterable[str]) -> tuple[str, ...]:
    modules = (sys.modules.get(name) for name in names)
    files = (getattr(module, "__file__", None) for module in modules)
    return tuple(os.path.dirname(file) + os.sep for file in files if file)  # noqa: PTH120 # it may lie in a zip file


def _keep_own(found: traceback.TracebackException) -> bool:
    """Removes the other frames of an exception and of its chain; returns whether any frame is left."""
    kept = False
    todo: list[traceback.TracebackException | None] = [found]
    seen: set[int] = set()
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.stack[:] = _own_frames(one.stack)
        kept |= bool(one.stack) or hasattr(one, "offset")  # A SyntaxError names a line itself.
        if not one.stack:
            one.stack = None  # type: ignore[assignment] # no headline either
        todo += [one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ())]
    return kept
