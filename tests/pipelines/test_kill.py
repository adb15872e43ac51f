"""Two kills of `make kill`: of the process group, and of DVC alone while dvc.lock is written; what a kill can leave."""

import random
from pathlib import Path

from tests.kill import MENDED_BY, REPRO, kill
from tests.pipelines.workspace import run, sh, started


def test_a_killed_command_that_is_repeated_ends_in_the_same_bytes(graph: Path, workspace: Path) -> None:
    sh(workspace, "git", "add", "--force", "dvc.lock")
    kill(graph, workspace, random.Random(0), dvc_alone=False, at_lock=False)
    kill(graph, workspace, random.Random(1), dvc_alone=True, at_lock=True)


def test_files_that_dvc_left_half_written_are_mended_by_the_commands_of_recovery(workspace: Path) -> None:
    sh(workspace, "git", "add", "--force", "dvc.lock")
    for broken in (workspace / "dvc.lock", workspace / ".dvc" / "tmp" / "rwlock"):
        broken.write_text("{")
        assert run(workspace, *REPRO).returncode, broken
        sh(workspace, "bash", "-c", MENDED_BY)
        assert started(sh(workspace, *REPRO)) == set()
