"""Two kills of `make kill`: of the process group, and of DVC alone while dvc.lock is written."""

import random
from pathlib import Path

from tests.kill import kill
from tests.pipelines.workspace import sh


def test_a_killed_command_that_is_repeated_ends_in_the_same_bytes(graph: Path, workspace: Path) -> None:
    sh(workspace, "git", "add", "--force", "dvc.lock")
    kill(graph, workspace, random.Random(0), dvc_alone=False, at_lock=False)
    kill(graph, workspace, random.Random(1), dvc_alone=True, at_lock=True)
