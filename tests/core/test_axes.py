"""Every axis name in a shape annotation is in the table of ``pathsum.core.axes``."""

from __future__ import annotations

import re
from pathlib import Path

import pathsum.core.axes

SOURCE = Path(pathsum.core.axes.__file__).parent
SHAPE = re.compile(r"(?:Float|Int|Int64|Complex|Bool|Num)\[[^\]\"]*\"([^\"]*)\"")


def test_shapes_use_the_words_of_the_table_only() -> None:
    words = set(re.findall(r"``(\w+)``", pathsum.core.axes.__doc__ or ""))
    used = {w.lstrip("*#") for path in SOURCE.rglob("*.py") for s in SHAPE.findall(path.read_text()) for w in s.split()}
    assert used <= words
