"""Writes the support matrix of docs/migration.md from docs/support.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "migration.md"
TABLE = ROOT / "docs" / "support.yaml"
BEGIN, END = "<!-- matrix: written by tools/generate_support_matrix.py -->", "<!-- end of matrix -->"


def sections() -> dict[str, list[dict[str, Any]]]:
    """Returns the rows of the table, by the heading of their part."""
    found: Any = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return {str(name): list(rows) for name, rows in found.items()}


def with_matrix(text: str) -> str:
    """Returns a page with the matrix in its place."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    parts = []
    for heading, rows in sections().items():
        peer = "Spring XD" if "Spring XD" in heading else "Storm"
        lines = [f"### {heading}", "", f"| {peer} | | note |", "|---|---|---|"]
        for row in rows:
            proof = row.get("proof", "")
            mark = f"([test](../{proof}))" if proof else "(no test of its own yet)" if row.get("untested") else ""
            shown = f"{row['note']} {mark}"
            lines.append(f"| {row['storm']} | {row['answer']} | {shown.strip()} |")
        parts.append("\n".join(lines))
    return f"{before}{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_matrix(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
