"""A user without a name or a home folder, as in a container, gets both."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pipelines import user
from pipelines.paths import ROOT
from pipelines.user import provide_user

NAMES = ("USER", "LOGNAME", "LNAME", "USERNAME", "HOME", *user.FOLDERS)
AS_NOBODY = ("unshare", "--user", "--map-user=54321", "--map-group=54321")
STARTED = """
import getpass, os, sys
from pathlib import Path
import pipelines
from pathsum.config import TrackingConfig
from pathsum.training.tracker import Run, mirror
from pipelines.paths import stage
config = TrackingConfig(mode="offline", project="p", group="g", entity="")
with stage(0), mirror(config, Run("a", "a", "t"), Path.cwd()):
    print(os.getuid(), getpass.getuser(), Path("~").expanduser())
"""


@pytest.fixture
def nameless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Forget name and home. The folder of temporary files is the returned one."""

    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found")

    for name in NAMES:
        monkeypatch.setenv(name, "")  # restored at the end
        monkeypatch.delenv(name)
    monkeypatch.setattr(getpass, "getuser", lambda: os.environ.get("USER") or unknown())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("home", ["nowhere", "a file", None])
def test_a_user_without_name_and_home_has_both(
    nameless: Path, monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    (nameless / "a file").touch()
    monkeypatch.setattr(os.path, "expanduser", lambda path: os.environ.get("HOME", path))  # no entry in passwd
    if home:
        monkeypatch.setenv("HOME", str(nameless / home))
    provide_user()
    assert os.environ["USER"] == f"uid{os.getuid()}"
    made = Path(os.environ["HOME"])
    assert made.parent == nameless
    assert made.stat().st_mode & 0o777 == 0o700
    provide_user()
    assert Path(os.environ["HOME"]) == made


def test_a_home_that_can_be_read_stays_and_one_that_can_be_written_too(
    nameless: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(nameless))
    monkeypatch.setenv("USER", "me")
    provide_user()
    assert not set(user.FOLDERS) & os.environ.keys()
    assert os.environ["USER"] == "me"
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    monkeypatch.setenv("XDG_CACHE_HOME", "/mine")
    provide_user()
    assert os.environ["HOME"] == str(nameless)
    assert os.environ["XDG_CACHE_HOME"] == "/mine"
    assert Path(os.environ["XDG_DATA_HOME"]).is_relative_to(nameless / f"pathsum-home-{os.getuid()}")


def test_the_folder_of_another_user_is_not_taken(nameless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(nameless / "nowhere"))
    (nameless / "other").mkdir()
    (nameless / f"pathsum-home-{os.getuid()}").symlink_to(nameless / "other")
    provide_user()
    assert Path(os.environ["HOME"]).name.startswith(f"pathsum-home-{os.getuid()}-")


@pytest.mark.skipif(
    not shutil.which("unshare") or subprocess.run([*AS_NOBODY, "true"], capture_output=True).returncode != 0,
    reason="no user namespaces",
)
@pytest.mark.parametrize("home", [None, "", "/nonexistent", "closed"])
def test_a_user_id_without_an_entry_in_passwd_runs_dvc_and_wandb(tmp_path: Path, home: str | None) -> None:
    environment = {key: value for key, value in os.environ.items() if key not in NAMES and "WANDB" not in key}
    environment |= {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "TMPDIR": str(tmp_path)}
    if home == "closed":
        home = str(tmp_path / home)
        Path(home).mkdir(mode=0o555)
    if home is not None:
        environment["HOME"] = home

    def run(*python: str, cwd: Path) -> str:
        command = [*AS_NOBODY, sys.executable, *python]
        done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert not done.stderr
        return done.stdout

    expected = home if home and home.startswith(str(tmp_path)) else str(tmp_path / "pathsum-home-54321")
    assert run("-c", STARTED, cwd=tmp_path).strip() == f"54321 uid54321 {expected}"
    assert run("-c", "from pipelines.repro import dvc; raise SystemExit(dvc('status', 'check'))", cwd=ROOT)
