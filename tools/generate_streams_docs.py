"""Writes the reference of modules in docs/streams.md from the modules' own options."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from storm_on_spark.xd.modules import modules

PAGE = Path(__file__).parent.parent / "docs" / "streams.md"
BEGIN = "<!-- modules: written by tools/generate_streams_docs.py -->\n"
END = "<!-- end of modules -->\n"


def with_modules(page: str) -> str:
    """Returns the page with the reference in it."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{chr(10).join(_lines())}\n\n{END}{after}"


def _lines() -> Iterator[str]:
    yield "| type | module | option | value | default | |"
    yield "|---|---|---|---|---|---|"
    for found in modules():
        yield f"| {found.type} | `{found.name}` | | | | {found.help} |"
        for option in found.options:
            default = "required" if option.default is None else f"`{option.default}`" if option.default else "empty"
            choices = f" One of {', '.join(option.choices)}." if option.choices else ""
            also = "".join(f" `--{name}` is the same." for name in option.also)
            yield f"| | | `--{option.name}` | {option.type} | {default} | {option.help}{choices}{also} |"


if __name__ == "__main__":
    PAGE.write_text(with_modules(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
