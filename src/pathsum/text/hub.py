"""Documents and model files from the Hugging Face hub."""

import importlib
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pathsum.config import Corpus, Name
from pathsum.text.corpus import Source

HUB_TIMEOUT = 5  # seconds to wait for an unreachable hub; its library would try for minutes
FILE = re.compile(r"[/.~].*|[^/]*|.*/.*/.*|.*\.(safetensors|json|pt|pth|bin|ckpt|pkl)")  # what is no hub id


class HubCorpus(Corpus):
    """A dataset that is streamed from the Hugging Face hub."""

    source: Literal["hub"]
    dataset: Name
    subset: str  # "" = the dataset's default
    split: Name
    text_field: Name


def hub_documents(config: HubCorpus) -> Iterator[str]:
    """Stream the documents of a Hugging Face dataset, without blank ones."""
    try:
        datasets: Any = importlib.import_module("datasets")
        if error := connection_error():
            raise error
        rows = datasets.load_dataset(config.dataset, config.subset or None, split=config.split, streaming=True)
    except (ImportError, OSError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"corpus=hub: expected dataset {config.dataset!r}, subset {config.subset!r}, split {config.split!r}, got "
            f"{error}; check names and network, or run `pip install 'pathsum[hub]'`"
        ) from error
    for row in rows:
        text = row.get(config.text_field, ...)
        if not isinstance(text, str | None):
            raise ValueError(f"corpus.text_field: expected text in one of {sorted(row)}, got {config.text_field!r}")
        if text and text.strip():
            yield text


SOURCE = Source(HubCorpus, hub_documents)


def local_or_hub(named: str, *wanted: str) -> Path:
    """Return the path of a local file (which need not exist), or of the first of files ``wanted`` of a hub id."""
    path = Path(os.path.expanduser(named))
    if path.exists() or FILE.fullmatch(named):
        return path
    try:
        hub: Any = importlib.import_module("huggingface_hub")
        options = {"etag_timeout": HUB_TIMEOUT, "local_files_only": connection_error() is not None}
        first, *_ = [hub.hf_hub_download(named, file, **options) for file in wanted]
    except (ImportError, OSError, ValueError) as error:
        files = " and ".join(wanted)
        raise ValueError(f"{named}: expected a local file, or a hub repository with {files}, got {error}") from error
    return Path(first)


def connection_error() -> OSError | None:
    """Return why the hub does not answer within HUB_TIMEOUT seconds, or None if it does."""
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    try:
        urllib.request.urlopen(urllib.request.Request(endpoint, method="HEAD"), timeout=HUB_TIMEOUT).close()
    except urllib.error.HTTPError as error:  # an answer
        error.close()
    except OSError as error:
        return error
    return None
