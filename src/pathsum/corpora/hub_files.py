"""Model files from the Hugging Face hub, where a name is no local file."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

SUFFIXES = (".safetensors", ".json", ".pt", ".pth", ".bin", ".ckpt", ".pkl")  # of files, not of hub ids
HUB_TIMEOUT = 5  # seconds that an unreachable hub may cost a request


def local_or_hub(named: str, *wanted: str) -> Path:
    """Return the path of the file ``named``: a local path, or a hub id ``owner/name``, of which all files ``wanted``
    are fetched and the first is returned.

    Raises ModuleNotFoundError without the package, ConnectionError where the hub cannot be reached, FileNotFoundError
    where it has no such repository or file. Nothing but the files wanted is fetched, and none is run.
    """
    path = Path(named).expanduser()
    if path.exists() or path.suffix in SUFFIXES or named.count("/") != 1 or named.startswith(("/", ".", "~")):
        return path
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{named}: a hub id needs the package `huggingface_hub`, which is not installed; `pip install "
            "huggingface_hub`, or give a local file"
        ) from error
    errors: Any = importlib.import_module("huggingface_hub.errors")
    try:
        found = [Path(hub.hf_hub_download(named, file, etag_timeout=HUB_TIMEOUT)) for file in wanted]
    except (errors.RepositoryNotFoundError, errors.RemoteEntryNotFoundError) as error:
        raise FileNotFoundError(
            f"{named}: expected a hub repository with {' and '.join(wanted)}, got: {error}; where it has a pickle "
            "instead (.pth, .bin), convert it: README, 'Your own weights', has the lines"
        ) from error
    except (errors.HfHubHTTPError, errors.HFValidationError, OSError) as error:
        raise ConnectionError(
            f"{named}: no such local file, and the hub gave no answer ({error}); check the path or the network"
        ) from error
    return found[0]
