"""A distribution of made-up files, installed in a folder."""

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path


def install(folder: Path, files: Mapping[str, str]) -> None:
    """Install the distribution `pathsum-fake` 1.7 of these ``files``, with a RECORD of their hashes."""
    record = []
    (folder / "fake").mkdir()
    for name, text in files.items():
        (folder / "fake" / name).write_text(text, encoding="utf-8")
        sha = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record.append(f"fake/{name},sha256={sha},{len(text.encode())}")
    info = folder / "pathsum_fake-1.7.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pathsum-fake\nVersion: 1.7\n")
    (info / "RECORD").write_text("\n".join(record) + "\n")
