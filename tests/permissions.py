"""Run a part of a test as a user who needs permission, although the tests may run as root."""

from __future__ import annotations

import codecs
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def ordinary_user() -> Iterator[Path]:
    """Make a temporary folder, and run a block as a user who owns it and is bound by the modes of files. Folders in it
    that the block shuts are opened again."""
    with tempfile.TemporaryDirectory() as name:
        folder, root = Path(name), os.geteuid() == 0
        if root:
            nobody = 65534
            codecs.lookup("utf-8-sig")  # while Python's own files can be read
            os.chown(folder, nobody, -1)
            os.seteuid(nobody)
        try:
            (folder / "probe").mkdir(mode=0)
            if os.access(folder / "probe", os.R_OK, effective_ids=True):
                pytest.skip("the file system of temporary files has no modes")
            (folder / "probe").rmdir()
            yield folder
        finally:
            if root:
                os.seteuid(0)
            for place in folder.iterdir():
                place.chmod(0o700)
