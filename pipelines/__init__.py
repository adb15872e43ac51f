"""Entry points of the stages: each reads its inputs, calls the library, and writes its outputs."""

import os
import sys

_is_command = sys.argv[0] == "-m"  # python -m pipelines.NAME: this package is imported before the command
if _is_command and sys.path[0] == os.getcwd():
    sys.path.append(sys.path.pop(0))  # else a user's own statistics.py in this folder would hide Python's
_library = os.path.abspath(os.path.join(os.path.dirname(__file__), os.pardir, "src"))
if os.path.isdir(_library):
    sys.path.insert(0, _library)  # in a copy of the project, .venv finds pathsum in the first one, not in the copy

import gc  # noqa: E402
import getpass  # noqa: E402
import signal  # noqa: E402
import tempfile  # noqa: E402
import threading  # noqa: E402
from contextlib import suppress  # noqa: E402
from importlib.util import find_spec  # noqa: E402
from multiprocessing import current_process  # noqa: E402

_missing = [name for name in ("torch", "dvc") if _is_command and not find_spec(name)]
if _missing:
    sys.exit(
        f"error: expected the packages of this project, but {sys.executable} has no {' and no '.join(_missing)}; run "
        "`make setup` once, and `. .venv/bin/activate` in each new shell"
    )

# OpenMP reads this setting when torch loads. Without it, waiting threads keep their cores busy, which slows training if
# other processes need these cores: 1.5k instead of 11k tokens/s next to three busy processes. On an idle machine the
# setting makes no difference.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

gc.set_threshold(10_000)  # imports make many objects and hardly any garbage; by default they take 4 to 10 % longer

INTERRUPTED = 130  # exit code after Ctrl-C, as in shells
FOLDERS = {"XDG_CACHE_HOME": ".cache", "XDG_DATA_HOME": ".local/share", "WANDB_CONFIG_DIR": ".config/wandb"}
SHELLS = {"sh", "dash", "bash", "zsh", "ksh"}


def provide_user() -> None:
    """Set USER if the system knows no name, HOME if there is none, and FOLDERS if it cannot be written, as in a
    container with `--user`."""
    try:
        getpass.getuser()
    except (KeyError, OSError):  # OSError from Python 3.13 on
        os.environ["USER"] = f"uid{os.getuid()}"
    if not os.environ.get("HOME"):
        os.environ.pop("HOME", None)  # an empty one would be the root folder
    home = os.path.expanduser("~")
    if os.access(home, os.W_OK | os.X_OK):
        return
    folder = os.path.join(tempfile.gettempdir(), f"pathsum-home-{os.getuid()}")
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    if os.path.islink(folder) or os.stat(folder).st_uid != os.getuid():  # somebody else's
        folder = tempfile.mkdtemp(prefix="pathsum-home-")
    if os.access(home, os.R_OK | os.X_OK):  # ~ stays what it is
        for name, path in FOLDERS.items():
            os.environ.setdefault(name, os.path.join(folder, path))
    else:
        os.environ["HOME"] = folder


def _interrupted(*_: object) -> None:
    """End at once: what is stored survives a kill at any moment, and the workers end with this process."""
    if "DVC_STAGE" not in os.environ:  # else DVC tells
        with suppress(OSError):  # an interrupt also ends the reader of a pipe
            print("\ninterrupted; run the same command again to go on", file=sys.stderr, flush=True)
    os._exit(INTERRUPTED)


def _end_with_parent() -> None:
    """End this process soon after the process that started it, or that started the shell in between, has ended."""
    import psutil

    above = next((process for process in psutil.Process().parents() if process.name() not in SHELLS), None)

    def watch() -> None:
        if above:
            above.wait()
        os._exit(INTERRUPTED)

    threading.Thread(target=watch, daemon=True).start()


provide_user()
_is_worker = current_process().name.startswith(("LokyProcess", "SpawnProcess"))
if _is_worker:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started it ends it
elif _is_command and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _interrupted)
if _is_worker or (_is_command and "DVC_STAGE" in os.environ):
    _end_with_parent()
