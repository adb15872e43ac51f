"""Run `python -m MODULE` in this process, which has already imported torch."""

import contextlib
import io
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch


def command(folder: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``module`` as a command in ``folder``, and return its exit code and what it printed."""
    code, threads, out, err = 0, torch.get_num_threads(), io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.chdir(folder)
        patch.setattr(sys, "argv", [module, *arguments])
        patch.delitem(sys.modules, module, raising=False)  # runpy warns where it was imported before
        try:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        except SystemExit as left:
            code = int(left.code or 0)
        finally:
            torch.set_num_threads(threads)
    return subprocess.CompletedProcess([module, *arguments], code, out.getvalue(), err.getvalue())
