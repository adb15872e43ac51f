"""Documents and model files from the Hugging Face hub."""

from __future__ import annotations

import importlib
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pathsum.config import HubCorpus

HUB_TIMEOUT = 5  # seconds that an unreachable hub may cost
SUFFIXES = (".safetensors", ".json", ".pt", ".pth", ".bin", ".ckpt", ".pkl")  # of files, not of hub ids


def hub_documents(config: HubCorpus) -> Iterator[str]:
    """Stream the documents of a Hugging Face dataset; blank ones are skipped.

    Raises ModuleNotFoundError without the ``datasets`` package, ConnectionError within HUB_TIMEOUT seconds when the hub
    cannot be reached, ValueError when the dataset, subset, split or text field does not exist."""
    datasets = _package(
        "datasets",
        "corpus=hub expects the package `datasets`, which is not installed; run `pip install 'pathsum[hub]'`, or use "
        "local files with `corpus=text`",
    )
    _require_hub(config.dataset)
    try:
        rows = datasets.load_dataset(config.dataset, config.subset or None, split=config.split, streaming=True)
    except (FileNotFoundError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"corpus.dataset: cannot open {config.dataset!r}, subset {config.subset!r}, split {config.split!r}: "
            f"{error}; check the three names on the dataset's page"
        ) from error
    for row in rows:
        if config.text_field not in row:
            raise ValueError(
                f"corpus.text_field: expected a field of {config.dataset}, got {config.text_field!r}; "
                f"choose one of {sorted(row)}"
            )
        if row[config.text_field].strip():
            yield row[config.text_field]


def local_or_hub(named: str, *wanted: str) -> Path:
    """Return the path of the file ``named``: a local path, or a hub id ``owner/name``, of which the files ``wanted``
    are fetched and the first is returned. None of them is run.

    Raises ModuleNotFoundError without the package, ConnectionError where the hub cannot be reached, FileNotFoundError
    where it has no such repository or file."""
    path = Path(named).expanduser()
    if path.exists() or path.suffix in SUFFIXES or named.count("/") != 1 or named.startswith(("/", ".", "~")):
        return path
    hub = _package(
        "huggingface_hub",
        f"{named}: a hub id needs the package `huggingface_hub`, which is not installed; `pip install "
        "huggingface_hub`, or give a local file",
    )
    errors: Any = importlib.import_module("huggingface_hub.errors")
    try:
        found = [hub.hf_hub_download(named, file, etag_timeout=HUB_TIMEOUT) for file in wanted]
    except (errors.RepositoryNotFoundError, errors.RemoteEntryNotFoundError) as error:
        raise FileNotFoundError(
            f"{named}: expected a hub repository with {' and '.join(wanted)}, got: {error}; where it has a pickle "
            "instead (.pth, .bin), convert it: README, 'Your own weights', has the lines"
        ) from error
    except (errors.HfHubHTTPError, errors.HFValidationError, OSError) as error:
        raise ConnectionError(
            f"{named}: no such local file, and the hub gave no answer ({error}); check the path or the network"
        ) from error
    return Path(found[0])


def _package(name: str, complaint: str) -> Any:
    """Import an optional package; ModuleNotFoundError with this complaint where it is missing."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(complaint) from error


def _require_hub(dataset: str) -> None:
    """Fail within HUB_TIMEOUT, where the library retries for most of a minute. Any HTTP answer counts as reachable."""
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    try:
        urllib.request.urlopen(urllib.request.Request(endpoint, method="HEAD"), timeout=HUB_TIMEOUT).close()
    except urllib.error.HTTPError as error:
        error.close()
    except OSError as error:
        raise ConnectionError(
            f"corpus=hub expects to reach {endpoint} for {dataset}, got no answer within {HUB_TIMEOUT} s ({error}); "
            "check the network (HF_ENDPOINT names a mirror), or use local files: `corpus=text corpus.paths=[FILES]`"
        ) from error
