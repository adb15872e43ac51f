"""The run store: names depend on what determines a run, one process trains a run, and only whole results are
adopted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pathsum.config import CellConfig
from pathsum.core.storage import write_json
from pathsum.training.store import RunBusy, adopt, fingerprint, locked
from tests.training.small import CELL, run


def test_the_fingerprint_depends_on_config_and_data() -> None:
    other = CellConfig(**{**CELL.model_dump(), "seed": 4})
    assert fingerprint(CELL, "text", []) == fingerprint(CELL, "text", [])
    assert len({fingerprint(CELL, "text", []), fingerprint(other, "text", []), fingerprint(CELL, "else", [])}) == 3


def test_the_fingerprint_depends_on_each_file_of_the_code_and_on_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1")
    found = [fingerprint(CELL, "text", [tmp_path])]
    (tmp_path / "a.py").write_text("x = 2")
    found.append(fingerprint(CELL, "text", [tmp_path]))
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    found.append(fingerprint(CELL, "text", [tmp_path]))
    (tmp_path / "notes.md").write_text("no code")
    assert len(set(found)) == 3
    assert fingerprint(CELL, "text", [tmp_path]) == found[-1]


def test_comments_and_docstrings_do_not_change_the_fingerprint(tmp_path: Path) -> None:
    def of(text: str) -> str:
        (tmp_path / "a.py").write_text(text)
        return fingerprint(CELL, "text", [tmp_path])

    code = of("def f(x):\n    return x  # x\n")
    assert of('"""A module."""\n\n\ndef f(x):\n    """Return x."""\n    return x\n') == code
    assert of("def f(x):\n    return -x\n") != code
    assert of("def f(x): return") != of("def f(x): return (")  # the second does not parse


def test_zero_layer_models_of_a_head_sweep_are_one_run() -> None:
    cells = [
        CellConfig(seed=0, model={**CELL.model.model_dump(), "n_layers": 0, "n_heads": n}, train=CELL.train)  # type: ignore[arg-type]
        for n in (2, 5)
    ]
    assert fingerprint(cells[0], "text", []) == fingerprint(cells[1], "text", [])


def test_a_second_process_on_the_same_run_is_refused_by_name(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from pathsum.training.store import locked\n"
        f"with locked(Path({str(tmp_path)!r}), False): pass"
    )
    with locked(tmp_path, wait=False):
        child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert child.returncode != 0
    assert f"process {os.getpid()} is training this run; wait for it, or stop it" in child.stderr
    assert RunBusy.__name__ in child.stderr


def test_a_lock_goes_with_its_process(tmp_path: Path) -> None:
    code = (
        "import os; from pathlib import Path; from pathsum.training.store import locked\n"
        f"with locked(Path({str(tmp_path)!r}), False): os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    with locked(tmp_path, wait=False):
        assert (tmp_path / "lock").read_text() == str(os.getpid())


def test_adopting_replaces_what_was_there(tmp_path: Path) -> None:
    for name in ("cell.json", "device.json"):
        write_json(tmp_path / "run" / name, {})
    run(tmp_path / "run")
    (tmp_path / "cell" / "old").mkdir(parents=True)
    adopt(tmp_path / "run", tmp_path / "cell")
    assert sorted(p.name for p in (tmp_path / "cell").iterdir()) == [
        "cell.json",
        "checkpoints",
        "device.json",
        "log.jsonl",
        "manifest.json",
    ]
    with pytest.raises(ValueError, match="manifest"):
        adopt(tmp_path / "absent", tmp_path / "cell")
