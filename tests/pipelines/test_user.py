"""A user without a name or a home folder, as in a container, gets both."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.paths import ROOT

AS_NOBODY = ("unshare", "--user", "--map-user=54321", "--map-group=54321")
STARTED = """
import getpass
from pathlib import Path
import pipelines
from pathsum.config import TrackingConfig
from pathsum.training.tracker import Run, mirror
from pipelines.paths import stage
config = TrackingConfig(mode="offline", project="p", group="g", entity="")
with stage(0), mirror(config, Run("a", "a", "t"), Path.cwd()):
    print(getpass.getuser(), Path("~").expanduser())
"""


@pytest.mark.skipif(
    not shutil.which("unshare") or subprocess.run([*AS_NOBODY, "true"], capture_output=True).returncode != 0,
    reason="no user namespaces",
)
@pytest.mark.parametrize("home", ["", "/nonexistent", "mine"])
def test_a_user_id_without_an_entry_in_passwd_runs_dvc_and_wandb(tmp_path: Path, home: str) -> None:
    environment = {key: value for key, value in os.environ.items() if "USER" not in key and "WANDB" not in key}
    environment |= {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "TMPDIR": str(tmp_path)}
    (tmp_path / "mine").mkdir()
    environment |= {"HOME": str(tmp_path / home) if home == "mine" else home, "LOGNAME": ""}

    def run(*python: str, cwd: Path) -> str:
        command = [*AS_NOBODY, sys.executable, *python]
        done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    name, found = run("-c", STARTED, cwd=tmp_path).split()
    assert name == "uid54321"
    assert found.startswith(str(tmp_path / ("mine" if home == "mine" else "pathsum-home-")))
    assert run("-c", "from pipelines.repro import dvc; raise SystemExit(dvc('status', 'check'))", cwd=ROOT)
