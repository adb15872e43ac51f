"""Hydra finds the launcher `ray` without Ray, and one lost task does not end the others. tests/cluster/test_ray.py runs
it on Ray."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from omegaconf import OmegaConf

from pipelines.paths import ROOT

SETTINGS = OmegaConf.load(ROOT / "conf" / "hydra" / "launcher" / "ray.yaml")


class WorkerLost(Exception):
    """What Ray raises for a task whose worker died too often."""


class FakeRay(ModuleType):
    """Return a result for each task but the second, whose worker is lost."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.exceptions = ModuleType("exceptions")
        self.exceptions.RayError = WorkerLost  # type: ignore[attr-defined]
        self.asked: list[dict[str, Any]] = []

    def init(self, **options: Any) -> None:
        self.asked.append(options)

    def options(self, **options: Any) -> FakeRay:
        self.asked.append(options)
        return self

    def remote(self, number: Any, *_: Any) -> Any:
        return number if isinstance(number, int) else self

    def put(self, shared: Any) -> Any:
        return shared

    def get(self, number: int) -> JobReturn:
        if number == 1:
            raise WorkerLost("the worker died")
        done = JobReturn(status=JobStatus.COMPLETED)
        done.return_value = number
        return done

    def shutdown(self) -> None:
        self.asked.append({})


def test_a_lost_task_fails_and_the_others_are_done(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ray = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.chdir(tmp_path)
    hydra = {"hydra": {"launcher": SETTINGS, "hydra_logging": None, "verbose": False, "sweep": {"dir": "sweep"}}}
    config = OmegaConf.create(hydra)
    launcher = Plugins.instance().instantiate_launcher(None, lambda _: None, config)  # type: ignore[arg-type]
    results = launcher.launch([["seed=0"], ["seed=1"], ["seed=2"]], 0)
    assert [result.status is JobStatus.COMPLETED for result in results] == [True, False, True]
    with pytest.raises(WorkerLost):
        _ = results[1].return_value
    begun, task, ended = ray.asked
    assert (begun["address"], task["num_cpus"], task["max_retries"], ended) == ("local", 2, 9, {})
    assert str(tmp_path) in begun["runtime_env"]["env_vars"]["PYTHONPATH"]
