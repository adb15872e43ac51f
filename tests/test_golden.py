"""The comparison of two trees names what differs, and nothing else."""

from pathlib import Path

import pandas as pd
import pytest
from safetensors.torch import save_file
from torch import arange

from tests.golden import differences, snapshot


def made_up(tree: Path, weight: float = 0.0, loss: str = "2.50", reason: str = "3 of 3 models pass.") -> Path:
    for folder in ("models/L2/checkpoints", "circuits/L2", "data", "reports"):
        (tree / folder).mkdir(parents=True)
    save_file({"W_E": arange(6.0) + weight, "W_U": arange(6.0)}, tree / "models/L2/checkpoints/00000001.safetensors")
    pd.DataFrame({"head": [0, 1], "score": [0.1, 0.2 + weight]}).to_parquet(tree / "circuits/L2/heads.parquet")
    (tree / "data/claims.json").write_text(f'{{"k_composition": {{"verdict": "reproduced", "detail": "{reason}"}}}}')
    (tree / "reports/README.md").write_text(f"# Losses\n\nThe loss of L2H4S5 is {loss} nats.\n\n# Heads\n\n0.1 and 3 %")
    return tree


def test_each_difference_is_named(tmp_path: Path) -> None:
    old = snapshot(made_up(tmp_path / "a"))
    assert differences(old, snapshot(made_up(tmp_path / "same"))) == []
    new = snapshot(made_up(tmp_path / "b", weight=1e-7, loss="2.51", reason="2 of 3 models pass."))
    lines = differences(old, new)
    assert [line.split(":")[0] for line in lines] == [
        "≠ circuits/L2/heads.parquet score",
        "≠ data/claims.json /k_composition/detail",
        "≠ models/L2/checkpoints/00000001.safetensors W_E",
        "≠ reports/README.md Losses",
    ]
    assert lines[-1].endswith("− 2.50; + 2.51")


def test_a_tree_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected models, circuits and reports, found none"):
        snapshot(tmp_path)
