"""Open models from safetensors files. Pickles are never opened."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from pathsum.core.storage import parse_json, read_value
from pathsum.imported.model import CheckpointModel, Imported
from pathsum.imported.transformer_lens import from_transformer_lens
from pathsum.model.checkpoint import load_checkpoint

PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl")


def open_weights(path: Path, tokenizer_hash: str) -> Imported:
    """Open the model in a safetensors file: a checkpoint of this project, or weights with TransformerLens's names.

    The configuration of the latter is the entry ``config`` (JSON) of the file's metadata, or the file ``<name>.json``
    or ``config.json`` in its folder. Raises FileNotFoundError if a file is missing, and ValueError if the weights
    cannot be read.
    """
    if path.suffix in PICKLES:
        raise ValueError(
            f"{path}: expected a .safetensors file, got a pickle, which could run any code when opened; convert it "
            "if you trust it, as docs/your-weights.md shows"
        )
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected a .safetensors file, found none; check WEIGHTS")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except SafetensorError as error:
        raise ValueError(f"{path}: expected a whole safetensors file ({error}); copy or convert it again") from error
    if "pathsum" in metadata:
        return CheckpointModel(load_checkpoint(path, tokenizer_hash))
    return from_transformer_lens(state, _config(path, metadata))


def _config(path: Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    """Return the configuration that belongs to a file of weights, with TransformerLens's older names translated to
    current ones."""
    neighbors = [p for p in (path.with_suffix(".json"), path.with_name("config.json")) if p.is_file()]
    if "config" not in metadata and not neighbors:
        raise FileNotFoundError(
            f"{path}: expected its configuration in {path.with_suffix('.json').name} or config.json next to it, found "
            'neither; write one, such as {"normalization_type": "LN", "positional_embedding_type": "shortformer", '
            '"n_ctx": 1024}'
        )
    where = f"{path}, entry config" if "config" in metadata else str(neighbors[0])
    config = parse_json(metadata["config"], where) if "config" in metadata else read_value(neighbors[0])
    if not isinstance(config, dict):
        raise ValueError(f"{where}: expected the settings of a model by name, got another JSON value; correct it")
    if "normalization" in config:
        config.setdefault("normalization_type", config["normalization"])
    if "shortformer_pos" in config:
        config.setdefault("positional_embedding_type", "shortformer" if config["shortformer_pos"] else "standard")
    return dict(config)
