"""Hydra launcher `ray`: one Ray task per model of a sweep, on this machine or on a running cluster.

Hydra requires a plugin to be in the namespace package ``hydra_plugins``, and every worker must be able to import it.
"""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, configure_log, filter_overrides, run_job, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict

_log = logging.getLogger(__name__)


class RayLauncher(Launcher):
    """Run each job of a sweep as a Ray task, which reserves ``num_cpus``, ``num_gpus`` and ``resources`` on its node.

    The ``address`` "local" starts Ray on this machine for the sweep; ``host:port`` joins the cluster with this head. If
    a worker or its node is lost, Ray runs the task again, up to ``max_retries`` times, and training resumes from its
    last state. A job that raises an exception is not run again, and the other jobs are still run.
    """

    def __init__(self, address: str, num_cpus: float, num_gpus: float, resources: DictConfig, max_retries: int) -> None:
        self.address = address
        self.task = {
            "num_cpus": num_cpus,
            "num_gpus": num_gpus,
            "resources": OmegaConf.to_container(resources),
            "max_retries": max_retries,
        }

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what every job needs."""
        self.hydra_context, self.task_function, self.config = hydra_context, task_function, config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run the jobs and return their results in order. A job that failed has the status FAILED."""
        import ray

        setup_globals()
        configure_log(self.config.hydra.hydra_logging, self.config.hydra.verbose)
        Path(self.config.hydra.sweep.dir).mkdir(parents=True, exist_ok=True)
        _start(self.address)
        job = ray.remote(_job).options(**self.task)
        shared = ray.put((self.hydra_context, self.config, self.task_function, Singleton.get_state(), os.getcwd()))
        tasks = []
        for number, overrides in enumerate(job_overrides, start=initial_job_idx):
            _log.info(f"\t#{number} : {' '.join(filter_overrides(overrides))}")
            tasks.append(job.remote(number, list(overrides), shared))
        try:
            return [_result(task) for task in tasks]
        finally:
            ray.shutdown()


def _start(address: str) -> None:
    """Start Ray or join a cluster, without usage statistics. Workers find the modules of the project folder."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    path = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
    alone: dict[str, Any] = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"} if address == "local" else {}
    ray.init(address=address, runtime_env={"env_vars": {"PYTHONPATH": path}}, **alone)


def _job(number: int, overrides: list[str], shared: tuple[Any, ...]) -> JobReturn:
    """Run one job in a Ray worker, in the folder in which the sweep was started."""
    context, config, task_function, singletons, folder = shared
    os.chdir(folder)
    setup_globals()
    Singleton.set_state(singletons)
    job = context.config_loader.load_sweep_config(config, overrides)
    with open_dict(job):
        job.hydra.job.id = f"{job.hydra.job.name}_{number}"
        job.hydra.job.num = number
    HydraConfig.instance().set_config(job)
    return run_job(task_function, job, "hydra.sweep.dir", "hydra.sweep.subdir", context)


def _result(task: Any) -> JobReturn:
    """Return the result of a task, or FAILED with the error if its worker was lost too often."""
    import ray

    try:
        done: JobReturn = ray.get(task)
        return done
    except ray.exceptions.RayError as error:
        failed = JobReturn(status=JobStatus.FAILED)
        failed.return_value = error
        return failed
