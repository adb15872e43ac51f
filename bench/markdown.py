"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

NOT_MEASURED = "Not measured yet: `{}`."


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table. The first two columns are aligned left, the others right."""
    line = ["---" if i < 2 else "---:" for i in range(len(head))]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in (head, line, *rows))
