"""Each folder imports only from the folders that it is allowed to import from."""

import ast
from pathlib import Path

import pytest
import yaml

from pathsum.core.store import closure

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "pathsum"

# room: the rooms it may import from, besides itself, lowest floor first
ALLOWED: dict[str, set[str]] = {
    "config": set(),
    "core": set(),
    "statistics": set(),
    "records": {"core"},
    "circuits": {"core", "statistics"},
    "text": {"config", "core", "records"},
    "model": {"config", "core"},
    "behavior": {"records", "statistics", "text"},
    "interventions": {"model"},
    "claims": {"behavior", "config", "records"},
    "training": {"behavior", "config", "core", "model", "records", "statistics", "text"},
    "extraction": {
        *("behavior", "circuits", "config", "core", "interventions", "model", "records", "statistics", "text"),
        "training",
    },
    "calibration": {
        *("behavior", "circuits", "config", "core", "extraction", "interventions", "model", "records", "statistics"),
        *("text", "training"),
    },
    "imported": {"circuits", "config", "core", "model", "text"},
    "api": {
        *("behavior", "circuits", "core", "extraction", "imported", "interventions", "model", "records", "statistics"),
        "text",
    },
    "reference": set(),
    "exporting": {"api", "core", "model", "reference"},
    "hand_made": {"api", "config", "core", "imported", "model", "text"},
    # one plane is spanned by the trajectories of all models, and one rise makes an onset
    "report": {
        *("behavior", "claims", "config", "core", "model", "records", "statistics.phase_change"),
        *("statistics.trajectories", "text"),
    },
}
# libraries that one room alone may import
OWNERS = {
    "wandb": ("training",),
    "wandb_workspaces": ("report",),
    "seaborn": ("api", "report"),
    "matplotlib": ("api", "report"),
    "jinja2": ("report",),
    "tokenizers": ("api", "hand_made", "imported", "report", "text"),
    "datasets": ("text",),
    "safetensors": ("exporting", "imported", "model", "text", "training"),
    "hydra": (),
    "omegaconf": (),
    "dvc": (),
}


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            found |= {f"{module}.{alias.name}" for alias in node.names} | {module}
    return found


def trespasses(path: Path) -> list[str]:
    """Return what ``path`` imports beyond the folders that it is allowed to import from."""
    here, bad = room(path), []
    for name in imports(path):
        top, *rest = name.split(".")
        if top == "pipelines" or (top in OWNERS and here not in OWNERS[top]):
            bad.append(name)
        if top == "pathsum" and rest:
            inner = ".".join(rest)
            allowed = ALLOWED[here] | {here}
            if not any(inner == a or inner.startswith(f"{a}.") or a.startswith(f"{inner}.") for a in allowed):
                bad.append(name)
    return sorted(bad)


FILES = sorted(p for p in SOURCE.rglob("*.py") if p.name != "__init__.py" or p.parent != SOURCE)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_file_imports_from_the_rooms_below_it_only(path: Path) -> None:
    assert trespasses(path) == []


def test_the_walk_notices_a_trespass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    (tmp_path / "circuits").mkdir()
    bad = tmp_path / "circuits" / "bad.py"
    bad.write_text(
        "import wandb\nfrom pathsum.model.transformer import Transformer\nfrom pathsum.circuits import paths\n"
    )
    assert trespasses(bad) == ["pathsum.model.transformer", "pathsum.model.transformer.Transformer", "wandb"]


def test_every_room_is_declared() -> None:
    assert {room(p) for p in FILES} - {"__init__"} == set(ALLOWED)


def test_nothing_is_pickled() -> None:
    folders = ("pipelines", "bench")
    for path in [*FILES, *(path for folder in folders for path in (ROOT / folder).rglob("*.py"))]:
        pickling = ("pickle", "joblib", "cloudpickle", "dill", "shelve", "marshal")
        assert not {n for n in imports(path) if n.split(".")[0] in pickling}, path
        text = path.read_text()
        assert "torch.save(" not in text, path
        assert "torch.load(" not in text, path
        assert "allow_pickle=True" not in text, path


def reached(path: Path, but: set[str]) -> set[Path]:
    """Return ``path`` and all files of this project that its imports lead to, except through the files ``but``."""
    found, ahead = set(), [path]
    while ahead:
        here = ahead.pop()
        found.add(here)
        for name in imports(here):
            room, *inside = name.split(".")
            file = {"pathsum": SOURCE, "pipelines": ROOT / "pipelines"}.get(room, ROOT / "none").joinpath(*inside)
            file = file.with_suffix(".py")
            if file.exists() and file.relative_to(ROOT).as_posix() not in but and file not in found:
                ahead.append(file)
    return found


@pytest.mark.parametrize("stage", ["train", "extract", "calibrate"])
def test_dvc_notices_each_change_of_code_that_a_fingerprint_covers(stage: str) -> None:
    from pipelines import calibrate, extract, train_cell

    code = {"train": (train_cell.CODE,), "extract": extract.CODE, "calibrate": calibrate.CODE}[stage]
    covered = {path for path in closure(code).values() if path.name != "__init__.py"}
    assert sorted(covered - stated(stage)) == []


CONFIGURATION = {
    "src/pathsum/config.py", "src/pathsum/training/tracker.py", "src/pathsum/report/dashboard.py", "pipelines/paths.py",
    "pipelines/pool.py", "pipelines/progress.py", "pipelines/forecast.py", "src/pathsum/claims/formatting.py",
}  # fmt: skip


def stated(stage: str) -> set[Path]:
    """Return the code files that a stage of dvc.yaml depends on."""
    about = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"][stage]
    deps = [ROOT / name for name in about["deps"] if name.endswith(".py") or name.startswith("src")]
    return {p for path in deps for p in ([path] if path.is_file() else path.rglob("*.py"))}


@pytest.mark.parametrize("stage", ["tokenize", "statistics", "train_cell", "extract", "calibrate", "verify", "report"])
def test_a_stage_depends_on_all_code_that_it_runs(stage: str) -> None:
    """But for configuration, which enters by value, and for modules that do not affect numbers."""
    missing = reached(ROOT / "pipelines" / f"{stage}.py", but=CONFIGURATION) - stated(stage.removesuffix("_cell"))
    assert sorted(str(p.relative_to(ROOT)) for p in missing) == []
