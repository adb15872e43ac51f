"""The tour runs from top to bottom in a fresh clone, with the pictures and the numbers of rows that are committed."""

import ast
import json
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import pytest

from pipelines.paths import ROOT

TOUR = ROOT / "docs" / "tour.ipynb"
CELLS = [cell for cell in json.loads(TOUR.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def value(source: str, names: dict[str, Any]) -> Any:
    """Run a cell as a notebook does, and return the value of its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None  # type: ignore[attr-defined]


def test_every_cell_runs_and_has_as_much_output_as_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib.use("Agg")
    monkeypatch.chdir(ROOT / "docs")
    names: dict[str, Any] = {}
    assert len(CELLS) == 11  # imports, and ten steps
    for cell in CELLS:
        plt.close("all")
        found = value("".join(cell["source"]), names)
        data = [output.get("data", {}) for output in cell["outputs"]]
        assert len(plt.get_fignums()) == sum("image/png" in d for d in data)
        tables = ["".join(d["text/html"]) for d in data if "text/html" in d]
        assert not tables or tables[0].count("<tr") == 1 + len(found)  # a header, and a row for each of the table's
    toy = names["toy"]
    assert (toy.run("bad cab bad").losses()[0, -2:] < 1).all()
    assert names["cost"].max() > 2  # nats: the key edges matter
    assert names["model"].induction_pair() is not None
    plt.close("all")
