"""Documents of a Hugging Face dataset, over the network."""

from __future__ import annotations

import importlib
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from pathsum.config import HubCorpus

HUB_TIMEOUT = 5.0  # seconds that an unreachable hub may cost


def hub_documents(config: HubCorpus) -> Iterator[str]:
    """Stream the documents of a Hugging Face dataset; blank ones are skipped.

    Raises ModuleNotFoundError without the ``datasets`` package, ConnectionError within HUB_TIMEOUT seconds when the hub
    cannot be reached, ValueError when the dataset, subset, split or text field does not exist.
    """
    try:
        datasets: Any = importlib.import_module("datasets")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "corpus=hub expects the package `datasets`, which is not installed; run `pip install 'pathsum[hub]'`, "
            "or use local files with `corpus=text`"
        ) from error
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


def _require_hub(dataset: str) -> None:
    """Fail within HUB_TIMEOUT, where the library retries for most of a minute. Any HTTP answer counts as reachable."""
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    try:
        urllib.request.urlopen(urllib.request.Request(endpoint, method="HEAD"), timeout=HUB_TIMEOUT).close()
    except urllib.error.HTTPError as error:
        error.close()
    except OSError as error:
        raise ConnectionError(
            f"corpus=hub expects to reach {endpoint} for {dataset}, got no answer within {HUB_TIMEOUT:.0f} s "
            f"({error}); check the network (HF_ENDPOINT names a mirror), or use local files: "
            "`corpus=text corpus.paths=[FILES]`"
        ) from error
