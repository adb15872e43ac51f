"""A sweep on a Ray cluster of two nodes. A worker is killed, then the head; the sweep ends with the bytes of one
process."""

from __future__ import annotations

import importlib.util
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from tests.cluster.services import Services, free_port, kill, services, succeeds
from tests.cluster.sweep import MODELS, SWEEP, contents, finished, trainers, until

if importlib.util.find_spec("ray") is None:
    pytest.skip("Ray is not installed: pip install 'pathsum[ray]'", allow_module_level=True)

RAY = (sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus=1", "--node-ip-address=127.0.0.1")
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_gcs_rpc_server_reconnect_timeout_s": "5",
    "OMP_NUM_THREADS": "1",
}


def start_nodes(ray: Services, project: Path, port: int, temporary: Path) -> list[subprocess.Popen[bytes]]:
    """Start a head and a second node, each with one core, and return both."""
    head = (*RAY, "--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={temporary}")
    started = [ray.start("head", head, project, **SETTINGS)]
    until("a head", lambda: "Ray runtime started" in ray.output("head"))
    started.append(ray.start("second", (*RAY, f"--address=127.0.0.1:{port}"), project, **SETTINGS))
    until("a second node", lambda: "Ray runtime started" in ray.output("second"))
    return started


def sweep(ray: Services, project: Path, port: int, name: str) -> subprocess.Popen[bytes]:
    launch = ("hydra/launcher=ray", f"hydra.launcher.address=127.0.0.1:{port}", "hydra.launcher.num_cpus=1")
    command = (sys.executable, "-m", "pipelines.train", "--multirun", *launch, *SWEEP)
    return ray.start(name, command, project, **SETTINGS)


def on_every_node(project: Path, nodes: list[subprocess.Popen[bytes]]) -> dict[int, Path]:
    """Return the runs in training, by process, if each node trains one."""
    found = trainers(project)
    families = [{child.pid for child in psutil.Process(node.pid).children(recursive=True)} for node in nodes]
    return found if all(family & found.keys() for family in families) else {}


def test_a_sweep_outlives_a_killed_worker_and_a_killed_head(project: Path, reference: Path, tmp_path: Path) -> None:
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="ray-") as short, services(tmp_path / "logs") as ray:  # for sockets
        temporary = Path(short)
        nodes = start_nodes(ray, project, port, temporary)
        broken = sweep(ray, project, port, "broken")
        victim, run = next(iter(until("a model on each node", lambda: on_every_node(project, nodes)).items()))
        psutil.Process(victim).kill()
        until("the killed model again", lambda: run in finished(project) or run in trainers(project).values())
        assert broken.poll() is None, ray.output("broken")[-4000:]
        done = until("two models", lambda: len(finished(project)) >= 2 and finished(project))
        untouched = {path: (path / "log.jsonl").stat().st_mtime_ns for path in done}
        until("a model midway", lambda: trainers(project))
        kill(nodes[0])
        assert broken.wait(120) != 0
        assert len(finished(project)) < MODELS, "the sweep was done before the head was killed"
        kill(nodes[1])
        start_nodes(ray, project, port, temporary)
        succeeds(ray, "resumed", sweep(ray, project, port, "resumed"))
    assert {path: (path / "log.jsonl").stat().st_mtime_ns for path in done} == untouched
    assert len(finished(project)) == MODELS
    assert contents(project) == contents(reference)
