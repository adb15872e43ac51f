"""A sweep on a Slurm cluster of two nodes. A node is killed with the model that it trains. Slurm queues the job again,
and the sweep ends with the bytes of one process."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.cluster.services import Services, free_port, kill, services, succeeds
from tests.cluster.sweep import MODELS, SWEEP, contents, finished, trainers, until
from tests.pipelines.workspace import sh

PATH = os.pathsep.join([os.environ["PATH"], "/usr/sbin"])
MISSING = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(name, path=PATH) is None]
if MISSING:
    pytest.skip(f"no {', '.join(MISSING)}: apt-get install slurm-wlm", allow_module_level=True)
pytest.importorskip("submitit", reason="submitit is not installed: pip install 'pathsum[launchers]'")

NODES = ("node1", "node2")
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
AuthType=auth/munge
# A job that is queued again waits until its first credential has expired, by default after two minutes.
AuthInfo=socket={folder}/munge.socket,cred_expire=10
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SlurmdTimeout=10
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={node1} CPUs=1 RealMemory=8000
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port={node2} CPUs=1 RealMemory=8000
PartitionName=cpu Nodes=node1,node2 Default=YES State=UP MaxTime=INFINITE
"""


def start_cluster(slurm: Services, folder: Path) -> dict[str, subprocess.Popen[bytes]]:
    """Start munge, the controller and two nodes with one core each. Return the daemon of each node."""
    names = ("controller", *NODES)
    ports = {name: free_port() for name in names}
    (folder / "slurm.conf").write_text(CONFIGURATION.format(folder=folder, host=socket.gethostname(), **ports))
    (folder / "munge.key").write_bytes(secrets.token_bytes(128))
    (folder / "munge.key").chmod(0o600)
    files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    munge = [f"--{option}={folder}/munge.{suffix}" for option, suffix in files.items()]
    slurm.start("munged", ("/usr/sbin/munged", "--foreground", "--force", *munge), folder)
    until("munge", (folder / "munge.socket").exists)
    env = {"SLURM_CONF": str(folder / "slurm.conf")}
    (folder / "state").mkdir()
    slurm.start("controller", ("/usr/sbin/slurmctld", "-D", "-c"), folder, **env)
    daemons = {}
    for node in NODES:
        (folder / node).mkdir()
        daemons[node] = slurm.start(node, ("/usr/sbin/slurmd", "-D", "-N", node), folder, **env)
    sinfo = ("env", f"SLURM_CONF={folder / 'slurm.conf'}", "sinfo", "--noheader", "--states=idle", "--format=%D")
    until("two nodes", lambda: sh(folder, *sinfo).strip() == "2")
    return daemons


def steps(folder: Path, node: str = "") -> set[psutil.Process]:
    """Return the processes of all jobs on ``node`` (default: on each node) and the daemons that Slurm gave them."""
    found = set()
    for process in psutil.process_iter():
        try:
            if (env := process.environ()).get("SLURM_CONF") != str(folder / "slurm.conf"):
                continue
            if (where := env.get("SLURMD_NODENAME")) and where.startswith(node):
                found |= {process, *filter(_daemon, process.parents())}
            elif not node and _daemon(process):
                found.add(process)
        except psutil.Error:
            continue
    return found


def _daemon(process: psutil.Process) -> bool:
    return "slurmstepd" in " ".join(process.cmdline())


def kill_node(folder: Path, node: str, daemon: subprocess.Popen[bytes]) -> None:
    """Kill the node's daemon and its jobs. First stop them all: a step's daemon that outlives its job, even briefly,
    reports the job as ended, and Slurm does not queue it again."""
    lost = steps(folder, node)
    for process in lost:
        with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            process.suspend()
    kill(daemon)
    for process in lost:
        if process.is_running():
            process.kill()


def on_node(project: Path, folder: Path, node: str) -> Path | None:
    """Return the run that is midway on ``node``, if any."""
    here = {process.pid for process in steps(folder, node)}
    return next((run for pid, run in trainers(project).items() if pid in here), None)


def test_a_sweep_outlives_a_killed_node(
    project: Path, reference: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("slurm")
    launch = ("hydra/launcher=slurm", "hydra.launcher.partition=cpu", "hydra.launcher.cpus_per_task=1")
    command = (sys.executable, "-m", "pipelines.train", "--multirun", *launch, "hydra.launcher.mem_gb=2", *SWEEP)
    with services(tmp_path / "logs") as slurm:
        slurm.ends.callback(lambda: [process.kill() for process in steps(folder) if process.is_running()])
        daemons = start_cluster(slurm, folder)
        sweep = slurm.start("sweep", command, project, SLURM_CONF=str(folder / "slurm.conf"))
        until("a model on the first node", lambda: on_node(project, folder, NODES[0]))
        lost = until("a model on the second node", lambda: on_node(project, folder, NODES[1]))
        kill_node(folder, NODES[1], daemons[NODES[1]])
        assert lost not in finished(project), "it was done before it could be killed"
        until("the lost job queued again", lambda: "requeue" in slurm.output("controller").lower())
        succeeds(slurm, "sweep", sweep, 900)  # submitit looks less and less often whether jobs have ended
    assert len(finished(project)) == MODELS
    assert contents(project) == contents(reference)
