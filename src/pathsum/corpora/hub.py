"""Documents and model files from the Hugging Face hub."""

from __future__ import annotations

import importlib
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pathsum.config import Corpus, Name
from pathsum.corpora.corpus import Source
from pathsum.corpora.text_files import local_path

HUB_TIMEOUT = 5  # seconds to wait for an unreachable hub
SUFFIXES = (".safetensors", ".json", ".pt", ".pth", ".bin", ".ckpt", ".pkl")  # endings of files, not of hub ids


class HubCorpus(Corpus):
    """A dataset that is streamed from the Hugging Face hub."""

    source: Literal["hub"]
    dataset: Name
    subset: str  # "" = the dataset's default
    split: Name
    text_field: Name


def hub_documents(config: HubCorpus) -> Iterator[str]:
    """Stream the documents of a Hugging Face dataset, without blank ones."""
    datasets = _package(
        "datasets",
        "corpus=hub expects the package `datasets`, which is not installed; run `pip install 'pathsum[hub]'`, or use "
        "local files with `corpus=text`",
    )
    if error := connection_error():
        raise ConnectionError(
            f"corpus=hub expects to reach {_endpoint()} for {config.dataset}, got no answer within {HUB_TIMEOUT} s "
            f"({error}); check the network (HF_ENDPOINT names a mirror), or use local files: `corpus=text "
            "corpus.paths=[FILES]`"
        ) from error
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
        text = row[config.text_field]
        if not isinstance(text, str | None):
            raise ValueError(
                f"corpus.text_field: expected text in {config.text_field!r} of {config.dataset}, got "
                f"{type(text).__name__}; choose another of {sorted(row)}"
            )
        if text and text.strip():
            yield text


SOURCE = Source(HubCorpus, hub_documents)


def local_or_hub(named: str, *wanted: str) -> Path:
    """Return the path of a local file (which need not exist), or of a file that is downloaded from the Hugging Face
    hub."""
    path = local_path(named)
    if path.exists() or path.suffix in SUFFIXES or named.count("/") != 1 or named.startswith(("/", ".", "~")):
        return path
    hub = _package(
        "huggingface_hub",
        f"{named}: a hub id needs the package `huggingface_hub`, which is not installed; run `pip install "
        "huggingface_hub`, or give a local file",
    )
    errors: Any = importlib.import_module("huggingface_hub.errors")
    unreachable = connection_error()
    options = {"etag_timeout": HUB_TIMEOUT, "local_files_only": unreachable is not None}
    try:
        found = [hub.hf_hub_download(named, file, **options) for file in wanted]
    except (errors.RepositoryNotFoundError, errors.RemoteEntryNotFoundError) as error:
        raise FileNotFoundError(
            f"{named}: expected a hub repository with {' and '.join(wanted)}, got: {error}; if it has a pickle "
            "instead (.pth, .bin), convert it as docs/your-weights.md shows"
        ) from error
    except (errors.HfHubHTTPError, errors.HFValidationError, OSError) as error:
        raise ConnectionError(
            f"{named}: no such local file, and the hub gave no answer ({unreachable or error}); check the path or the "
            "network"
        ) from error
    return Path(found[0])


def _package(name: str, complaint: str) -> Any:
    """Import an optional package. Raises ModuleNotFoundError with the message ``complaint`` if it is missing."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(complaint) from error


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co")


def connection_error() -> OSError | None:
    """Return why the hub does not answer within HUB_TIMEOUT seconds, or None if it does."""
    try:
        urllib.request.urlopen(urllib.request.Request(_endpoint(), method="HEAD"), timeout=HUB_TIMEOUT).close()
    except urllib.error.HTTPError as error:
        error.close()
    except OSError as error:
        return error
    return None
