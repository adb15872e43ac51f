"""The README and docs/ do what they say: each Python block runs, and each shell line runs or is an exception with a
reason.

A page runs from top to bottom, on tiny models with the names that the page uses. That the exceptions can be typed is
checked in tests/test_readme.py.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from pathsum.core.manifest import write_manifest
from tests.imported.models import POSITIONS, written
from tests.pipelines.workspace import commit, environment, sh
from tests.test_readme import PAGES, pieces

MODEL, CHECKPOINT = "L2H4S5", "00001954.safetensors"  # that the pages name
INSTALLS, ACCOUNT, HOSTS = "installs packages", "needs an account of W&B", "needs several hosts; tests/cluster"
TRAINS, CORPORA = (
    "trains for minutes; tests/pipelines/test_sweep.py",
    "trains on corpora; tests/pipelines/test_texts.py",
)
EXCEPTIONS = {
    "make test": "runs this test",
    "make smoke": "makes the graph that these tests use",
    "make cluster": "starts clusters; tests/cluster",
    "make leet": "needs a terminal; tests/training/tracking/test_leet.py",
    "make compare": "named without its argument, which docs/sharing.md gives",
    "make report": "draws the whole report; the last stage of make smoke",
    "make sweep JOBS=2 ARGS='model.n_layers=1,2 seed=0,1,2'": TRAINS,
    "python -m pipelines.train --multirun model.n_layers=1,2 train.tokens=500000": TRAINS,
    "dvc exp run -S 'sweep.n_heads=[4,6,8]'": TRAINS,
    "dvc exp run -S 'sweep.d_head=[16,64]'": TRAINS,
    "dvc exp run -S '++sweep.overrides.L2H4S6.train.tokens=9000000'": TRAINS,
    "make corpora": CORPORA,
    "make repro TEXT='notes/**/*.md'": CORPORA,
    "make repro TEXT=book.txt SEPARATOR='\\n\\n'": CORPORA,
    "make repro TEXT='essays@prose=essays/*.txt'": CORPORA,
    "make corpora TEXT='essays=essays/**/*.txt notes@prose=notes/*.md'": CORPORA,
    "make corpora ARGS='--only python'": CORPORA,
    "make corpora ARGS='--profile sinusoidal --only python'": CORPORA,
    "python -m pipelines.train --multirun hydra/launcher=slurm hydra.launcher.partition=cpu model.n_layers=1,2 "
    "seed=0,1,2": HOSTS,
    "python -m pipelines.train --multirun hydra/launcher=ray model.n_layers=1,2 seed=0,1,2": HOSTS,
    "python -m pipelines.train --multirun hydra/launcher=ray hydra.launcher.address=HOST:6379 model.n_layers=1,2 "
    "seed=0,1,2": HOSTS,
    "ray start --head --port=6379": HOSTS,
    "ray start --address=HOST:6379": HOSTS,
    "torchrun --nnodes 2 --nproc-per-node 1 --max-restarts 3 --rdzv-backend c10d --rdzv-endpoint HOST:29400 -m "
    "pipelines.train model.n_layers=2 seed=1": HOSTS,
    "dvc remote add --default store ssh://USER@HOST:PORT/FOLDER": HOSTS,
    "dvc remote modify --local store keyfile KEY": HOSTS,
    "dvc remote add -d store /path/or/s3://bucket && dvc push": "needs a store; tests/pipelines/test_sweep.py",
    "wandb login && WANDB_MODE=online make repro": ACCOUNT,
    "wandb sync runs/wandb": ACCOUNT,
    "pip install 'pathsum[dashboard]' && make dashboard": ACCOUNT,
    "pip install 'pathsum[launchers]'": INSTALLS,
    "pip install 'pathsum[ray]'": INSTALLS,
    "pip install 'pathsum[hub]'": INSTALLS,
    "pip install -c requirements.lock 'pathsum[s3]'": INSTALLS,
    "pip install -c requirements.lock 'pathsum[ssh]'": INSTALLS,
    "pip install pip-audit && pip-audit -r requirements.lock --no-deps --disable-pip": INSTALLS,
}
# a line that a later one would not expect, and the command that the page says to restore with
RESTORED = {"""python -m pipelines.compose corpus=text 'corpus.paths=["~/notes/**/*.txt"]'""": "make params"}


ALL = {page.name: list(pieces(page)) for page in PAGES}
FIRST = {line: name for name in reversed(ALL) for language, line in ALL[name] if language == "bash"}


def environ(folder: Path) -> dict[str, str]:
    """Return the environment of a user in ``folder``, whose own environment .venv is ready and whose browser only
    notes what it opens."""
    kept = {k: v for k, v in environment(folder).items() if not k.startswith("MAKE") and k != "VENV"}
    return {**kept, "HOME": str(folder / "home"), "PATH": f"{folder / 'home' / 'bin'}{os.pathsep}{kept['PATH']}"}


@pytest.fixture(scope="module")
def project(workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project after `make repro`, on the branch main, with a DVC remote and notes in the home folder."""
    (workspace / ".venv").mkdir()
    for part in Path(sys.prefix).iterdir():
        if part.name != ".ready":
            (workspace / ".venv" / part.name).symlink_to(part)
    (workspace / ".venv" / ".ready").touch()
    home = tmp_path_factory.mktemp("home")
    (home / "notes").mkdir()
    (home / "notes" / "one.txt").write_text("A note.\n")
    (home / "bin").mkdir()
    (home / "bin" / "xdg-open").write_text('#!/bin/sh\necho "$1" >"$HOME/opened"\n')
    (home / "bin" / "xdg-open").chmod(0o755)
    with (workspace / ".gitignore").open("a") as ignored:
        ignored.write("/home\n")
    (workspace / "home").symlink_to(home)
    sh(workspace, "dvc", "remote", "add", "--default", "store", str(home / "store"))
    commit(workspace)
    sh(workspace, "git", "branch", "--move", "--force", "main")
    return workspace


@pytest.fixture
def models(project: Path, tmp_path: Path) -> Path:
    """Return a folder with the code and the tokens of the project, and its two-layer model under the name MODEL."""
    own = {"models", "circuits", "conf"}
    for part in project.iterdir():
        if part.name not in own:
            (tmp_path / part.name).symlink_to(part)
    shutil.copytree(project / "conf", tmp_path / "conf")
    shutil.copytree(project / "circuits" / "L2H2S0", tmp_path / "circuits" / MODEL)
    model = Path(shutil.copytree(project / "models" / "L2H2S0", tmp_path / "models" / MODEL))
    shutil.copy(max(model.glob("checkpoints/*")), model / "checkpoints" / CHECKPOINT)
    write_manifest(model)
    return tmp_path


def draft(folder: Path) -> dict[str, Any]:
    """Let no claim be frozen yet."""
    path = folder / "conf" / "claims.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"frozen": None, "claims": {}, "changes": []}))
    return {}


def own_model(folder: Path) -> dict[str, Any]:
    """Write a model of another library, its tokenizer and a text. Return the model as that library would hold it."""
    names = ["the", "cup", "and", "spoon", "<unk>", "<|endoftext|>"]
    tokenizer = Tokenizer(WordLevel({name: i for i, name in enumerate(names)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "texts").mkdir()
    drawn = torch.randint(4, (2000, 6), generator=torch.Generator().manual_seed(0)).tolist()
    (folder / "texts" / "one.txt").write_text("\n".join(" ".join(names[i] for i in line) for line in drawn))
    state, config = written(1, normalization_type="LN", **POSITIONS[1])
    state = {name: tensor.float() for name, tensor in state.items()}
    for name in ("mine", "one", "step0", "step1", "step2"):
        save_file(state, folder / f"{name}.safetensors")
        (folder / f"{name}.json").write_text(json.dumps(config))
    listed = re.search(r"```yaml\n(.*?)```", next(p for p in PAGES if p.name == "your-weights.md").read_text(), re.S)
    assert listed
    (folder / "models.yaml").write_text(listed[1])
    torch.save(state, folder / "model.pth")
    return {"model": SimpleNamespace(state_dict=lambda: state, cfg=SimpleNamespace(to_dict=lambda: config))}


# pages that read models, and what such a page expects the reader to have
READS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "api.md": own_model,
    "interventions.md": lambda folder: {},
    "preregistration.md": draft,
    "your-weights.md": own_model,
}


@pytest.mark.parametrize("page", [name for name in ALL if ALL[name]])
def test_a_page_runs_from_top_to_bottom(
    page: str, project: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = request.getfixturevalue("models") if page in READS else project
    names = READS[page](folder) if page in READS else {}
    monkeypatch.chdir(folder)
    for language, text in dict.fromkeys(ALL[page]):
        if language == "python":
            exec(compile(text, page, "exec"), names)
        elif text not in EXCEPTIONS and FIRST[text] == page:
            for line in filter(None, (text, RESTORED.get(text))):
                done = subprocess.run(
                    ["bash", "-c", line],
                    cwd=folder,
                    env=environ(folder),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    check=False,
                )
                assert done.returncode == 0, f"{line}: {done.stdout[-3000:]}"


def test_every_exception_is_a_line_of_a_page_and_most_lines_are_none() -> None:
    assert set(EXCEPTIONS) <= set(FIRST)
    assert set(RESTORED) <= set(FIRST) - set(EXCEPTIONS)
    assert set(READS) <= set(ALL)
    assert len(set(FIRST) - set(EXCEPTIONS)) > 25
