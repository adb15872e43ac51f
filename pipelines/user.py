"""Give libraries a user's name and folders where the system has none, as in a container with `docker run --user`."""

from __future__ import annotations

import getpass
import os
import tempfile
from pathlib import Path

FOLDERS = {"XDG_CACHE_HOME": ".cache", "XDG_DATA_HOME": ".local/share", "WANDB_CONFIG_DIR": ".config/wandb"}


def provide_user() -> None:
    """Set USER if the system knows no name, HOME if there is no such folder, and FOLDERS if it cannot be written."""
    try:
        getpass.getuser()
    except (KeyError, OSError):  # OSError from Python 3.13 on
        os.environ["USER"] = f"uid{os.getuid()}"
    if not os.environ.get("HOME"):
        os.environ.pop("HOME", None)  # an empty one would be the root folder
    home = os.path.expanduser("~")
    if os.path.isabs(home) and os.access(home, os.W_OK | os.X_OK):
        return
    folder = Path(tempfile.gettempdir(), f"pathsum-home-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():  # somebody else's
        folder = Path(tempfile.mkdtemp(prefix=f"{folder.name}-"))
    if os.path.isabs(home) and os.access(home, os.R_OK | os.X_OK):  # ~ stays what it is
        for name, path in FOLDERS.items():
            os.environ.setdefault(name, str(folder / path))
    else:
        os.environ["HOME"] = str(folder)
