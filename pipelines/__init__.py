"""Entry points of the stages. Each reads its inputs, calls the library, and writes its outputs.

The library, src/pathsum, uses neither params.yaml nor Hydra, and gets the paths of stored files from here.
"""

import gc
import os
import sys

_is_command = sys.argv[0] == "-m"  # python -m pipelines.NAME: this package is imported before the command
if _is_command and sys.path[0] == os.getcwd():
    sys.path.append(sys.path.pop(0))  # else a user's own statistics.py in this folder would hide Python's
_library = os.path.abspath(os.path.join(os.path.dirname(__file__), os.pardir, "src"))
if os.path.isdir(_library):
    sys.path.insert(0, _library)  # in a copy of the project, .venv finds pathsum in the first one, not in the copy

import signal  # noqa: E402

_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # an interrupt waits for the end of these imports

from importlib.util import find_spec  # noqa: E402
from multiprocessing import current_process  # noqa: E402

_missing = [name for name in ("torch", "dvc") if _is_command and not find_spec(name)]
if _missing:
    sys.exit(
        f"error: expected the packages of this project, but {sys.executable} has no {' and no '.join(_missing)}; run "
        "`make setup` once, and `. .venv/bin/activate` in each new shell"
    )

from pipelines.interrupts import end_with_parent, listen  # noqa: E402
from pipelines.user import provide_user  # noqa: E402

provide_user()

# OpenMP reads this setting when torch loads. Without it, waiting threads keep their cores busy, which slows training if
# other processes need these cores: 1.5k instead of 11k tokens/s next to three busy processes. On an idle machine the
# setting makes no difference.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

gc.set_threshold(10_000)  # imports make many objects and hardly any garbage; by default they take 4 to 10 % longer

if _is_command:
    listen(_mask)
    if "DVC_STAGE" in os.environ:
        end_with_parent()  # if DVC is killed, its stages end too, so that they do not write files of the next run
else:
    signal.pthread_sigmask(signal.SIG_SETMASK, _mask)
    if current_process().name.startswith(("LokyProcess", "SpawnProcess")):  # workers that wait for more work
        end_with_parent()
