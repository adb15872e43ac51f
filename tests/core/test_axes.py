"""The table of ``pathsum.core.axes`` has the axis names of all shape annotations, and no others."""

import re
from pathlib import Path

import pathsum
import pathsum.core.axes

SOURCE = Path(pathsum.__file__).parent
SHAPE = re.compile(r"(?:Float|Float64|Int|Int64|Integer|Complex|Bool|Num)\[[^\]\"]*\"([^\"]*)\"")


def test_shapes_use_the_words_of_the_table_and_all_of_them() -> None:
    words = set(re.findall(r"``(\w+)``", pathsum.core.axes.__doc__ or ""))
    used = {w.lstrip("*#") for path in SOURCE.rglob("*.py") for s in SHAPE.findall(path.read_text()) for w in s.split()}
    assert {w for w in used if not w.isdigit()} == words
