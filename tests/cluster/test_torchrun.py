"""Models trained by two hosts with one process each. A process is killed, then a whole host. The models end with the
bytes of an uninterrupted run by two hosts, and with the loss curve of one process up to rounding."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from itertools import chain, product
from pathlib import Path

import psutil
import pytest

from pathsum.core.storage import read_lines
from pathsum.records.evaluation import Evaluation
from tests.cluster.services import Services, free_port, kill, services, succeeds
from tests.cluster.sweep import FIXED, MODELS, contents, finished, trainers, until

# By default, each host keeps the store of its first start. After a restart, the hosts may then use different ones and
# wait for each other without end.
FRESH_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
CELLS = [(f"model.n_layers={n_layers}", f"seed={seed}") for n_layers, seed in product((1, 2), (0, 1, 2))]


class Pair:
    """Two hosts that train one model: the same command on each."""

    def __init__(self, torchrun: Services, project: Path, cell: tuple[str, ...]) -> None:
        self.services, self.project, self.name = torchrun, project, f"{project.name}-{'-'.join(cell)}"
        port = free_port()
        rendezvous = ("--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", "--local-addr=127.0.0.1")
        hosts = ("--nnodes=2", "--nproc-per-node=1", "--max-restarts=3", *rendezvous)
        self.command = (sys.executable, "-m", "torch.distributed.run", *hosts, "-m", "pipelines.train", *FIXED, *cell)
        self.hosts = [self.start(0)]
        until("the store of the first host", lambda: _listens(port))  # on one machine, either host could open it
        self.hosts.append(self.start(1))

    def start(self, host: int) -> subprocess.Popen[bytes]:
        return self.services.start(f"{self.name}-{host}", self.command, self.project, **LOOPBACK, **FRESH_STORE)

    def workers(self) -> list[list[psutil.Process]]:
        """Return the training processes of each host."""
        return [psutil.Process(host.pid).children(recursive=True) for host in self.hosts]

    def restart_by(self, interruption: Callable[[Pair], None]) -> None:
        """Interrupt training, and wait until both hosts have new processes."""
        before = {worker.pid for worker in chain(*self.workers())}
        interruption(self)
        until("new processes", lambda: all({w.pid for w in host} - before for host in self.workers()))

    def finish(self) -> None:
        for host, process in enumerate(self.hosts):
            succeeds(self.services, f"{self.name}-{host}", process)


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def kill_a_process(pair: Pair) -> None:
    """Kill the process of the second host. Both agents notice, and start their processes again."""
    (victim,) = pair.workers()[1]
    victim.kill()


def kill_a_host(pair: Pair) -> None:
    """Kill the agent of the second host and its process, and start the same command there again."""
    kill(pair.hosts[1])
    pair.hosts[1] = pair.start(1)


INTERRUPTED = {CELLS[3]: kill_a_process, CELLS[4]: kill_a_host}


@pytest.fixture
def whole(project: Path, tmp_path: Path) -> Path:
    """Train the models of INTERRUPTED without interruption."""
    folder = Path(shutil.copytree(project, tmp_path / "whole"))
    with services(tmp_path / "logs") as torchrun:
        for cell in INTERRUPTED:
            Pair(torchrun, folder, cell).finish()
    return folder


def test_two_hosts_train_and_go_on_after_a_kill(project: Path, whole: Path, reference: Path, tmp_path: Path) -> None:
    with services(tmp_path / "logs") as torchrun:
        for cell in CELLS:
            pair = Pair(torchrun, project, cell)
            if cell in INTERRUPTED:
                until("a model midway", lambda: trainers(project))
                pair.restart_by(INTERRUPTED[cell])
                assert len(finished(project)) == CELLS.index(cell), "it was done before it could be killed"
            pair.finish()
    assert len(finished(project)) == MODELS
    assert contents(whole).items() <= contents(project).items()
    for run in finished(project):
        _same_curve(run / "log.jsonl", reference / run.relative_to(project) / "log.jsonl")


def _same_curve(two: Path, one: Path) -> None:
    """Check the curves against each other. Sums are in another order and products are in bf16, so they differ."""
    ours, theirs = (read_lines(path, Evaluation) for path in (two, one))
    assert [e.tokens_seen for e in ours] == [e.tokens_seen for e in theirs]
    for our, their in zip(ours, theirs, strict=True):
        assert our.val_loss_nats == pytest.approx(their.val_loss_nats, abs=0.02)
    assert ours[0].val_loss_nats - ours[-1].val_loss_nats > 0.3
