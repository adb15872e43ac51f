"""A DVC remote on an SSH server: results are pushed from one clone, and in another one `make repro` has nothing to do.
A training process and `dvc push` are killed midway."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from pipelines.paths import ROOT
from tests.cluster.services import Services, free_port, services, succeeds
from tests.cluster.sweep import until
from tests.pipelines.workspace import commit, edit, sh, started

SSHD = shutil.which("sshd", path=os.pathsep.join([os.environ["PATH"], "/usr/sbin"]))
if SSHD is None:
    pytest.skip("no SSH server: apt-get install openssh-server", allow_module_level=True)
pytest.importorskip("dvc_ssh", reason="DVC cannot use SSH: pip install 'pathsum[ssh]'")

MAKE_REPRO = ("make", "--old-file=setup", f"VENV={Path(sys.prefix)}", "repro", "JOBS=2")
STORED = ("models", "circuits", "data")


def start_server(ssh: Services, folder: Path) -> tuple[int, Path]:
    """Start an SSH server on a loopback port, with keys of its own. Return the port and the key of its user."""
    port, keys = free_port(), folder / "keys"
    keys.mkdir()
    for name in ("host", "user"):
        sh(folder, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name))
    Path("/run/sshd").mkdir(exist_ok=True)  # where sshd separates privileges
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {keys / 'host'}\nAuthorizedKeysFile {keys / 'user.pub'}\n"
        f"PidFile {folder / 'sshd.pid'}\nAuthenticationMethods publickey\nPermitRootLogin prohibit-password\n"
        "StrictModes no\nUsePAM no\nSubsystem sftp internal-sftp\n"
    )
    ssh.start("sshd", (str(SSHD), "-D", "-e", "-f", str(folder / "sshd_config")), folder)
    until("an SSH server", lambda: "Server listening" in ssh.output("sshd"))
    return port, keys / "user"


def add_remote(clone: Path, port: int, key: Path, store: Path) -> None:
    """Make the server the remote of ``clone``, as a user does. The key is not committed."""
    address = f"ssh://{os.environ.get('USER', 'root')}@127.0.0.1:{port}{store}"
    sh(clone, "dvc", "remote", "add", "--default", "store", address)
    sh(clone, "dvc", "remote", "modify", "--local", "store", "keyfile", str(key))


def smoke(folder: Path) -> Path:
    """Return a repository with the smoke profile and eight models, none of them trained."""
    sh(ROOT, sys.executable, "-m", "pipelines.scratch", str(folder))
    edit(folder / "conf" / "config.yaml", "- profile: laptop", "- profile: smoke")
    edit(folder / "conf" / "config.yaml", "tracking: wandb #", "tracking: none #")
    edit(folder / "conf" / "profile" / "smoke.yaml", "seeds: [0]\n", "seeds: [0, 1]\n")
    sh(folder, sys.executable, "-m", "pipelines.compose")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Return every stored result that DVC caches."""
    files = [p for name in STORED for p in (folder / name).rglob("*") if p.is_file()]
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def kill_a_trainer(make: subprocess.Popen[bytes]) -> None:
    """Kill the next process that trains a model."""

    def trainer() -> psutil.Process | None:
        for process in psutil.Process(make.pid).children(recursive=True):
            with suppress(psutil.Error):  # it has ended meanwhile
                if process.cmdline()[1:3] == ["-m", "pipelines.train_cell"]:
                    return process
        return None

    until("a trainer", trainer, 300).kill()


def test_results_pushed_by_one_clone_leave_nothing_to_do_in_another(tmp_path: Path) -> None:
    one, two, store = smoke(tmp_path / "one"), tmp_path / "two", tmp_path / "store"
    with services(tmp_path / "logs") as ssh:
        broken = ssh.start("broken", MAKE_REPRO, one)
        kill_a_trainer(broken)
        assert broken.wait(600) != 0
        succeeds(ssh, "repro", ssh.start("repro", MAKE_REPRO, one), 600)
        assert len(list((one / "models").iterdir())) == 11
        port, key = start_server(ssh, tmp_path)
        add_remote(one, port, key, store)
        half = ssh.start("half", ("dvc", "push", "--jobs=1"), one)
        until("a pushed file", lambda: any(p.is_file() for p in store.rglob("*")))
        assert half.poll() is None, ssh.output("half")
        half.kill()
        half.wait()
        assert len(list(store.rglob("*"))) < len(list((one / ".dvc" / "cache").rglob("*")))
        sh(one, "dvc", "push")
        commit(one)
        sh(tmp_path, "git", "clone", "--quiet", str(one), "two")
        sh(two, "dvc", "remote", "modify", "--local", "store", "keyfile", str(key))
        sh(two, "dvc", "pull")
        said = succeeds(ssh, "second", ssh.start("second", MAKE_REPRO, two))
    assert not started(said)
    assert "Data and pipelines are up to date." in said
    assert contents(two) == contents(one)
