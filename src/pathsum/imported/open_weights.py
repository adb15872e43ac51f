"""Open models from safetensors files. Pickles are never opened."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer

from pathsum.core.manifest import MANIFEST, read_manifest, sha256
from pathsum.core.storage import parse_json
from pathsum.imported.reference_model import from_reference
from pathsum.imported.refusals import unread
from pathsum.imported.text import bos_id, codec_of
from pathsum.imported.transformer_lens import from_transformer_lens
from pathsum.model.checkpoint import load_checkpoint
from pathsum.model.opened import only
from pathsum.model.transformer import Transformer
from pathsum.text.tokenizer import Codec, tokenizer_hash


def open_weights(path: Path, tokenizer_hash: str) -> Transformer:
    """Open the model in a safetensors file: a checkpoint or an export of this project, or weights of TransformerLens.

    The last two take their configuration from the entry ``config`` (JSON) of the file's metadata, or from
    ``<name>.json`` or ``config.json`` in its folder. Weights of TransformerLens become float64. Ids are those of the
    file. Warns about unknown keys of the configuration, and about a checkpoint that no manifest lists. ValueError if
    weights cannot be read or represented, or differ from their manifest or from the hash of their tokenizer."""
    if path.suffix in (".pt", ".pth", ".bin", ".ckpt", ".pkl"):
        raise ValueError(f"{path}: expected a .safetensors file, got a pickle; see docs/your-weights.md to convert it")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected a .safetensors file, found none; check WEIGHTS")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except SafetensorError as error:
        raise ValueError(f"{path}: expected a whole safetensors file, got {error}") from error
    if "pathsum" in metadata:
        _require_listed(path)
        return load_checkpoint(path, tokenizer_hash)
    config, where = _config(path, metadata)
    try:
        model = from_reference(state, config) if "model" in config else from_transformer_lens(state, config)
    except ValueError as error:
        raise ValueError(f"{path}, with the configuration in {where}: {error}") from error
    if "model" not in config and (ignored := unread(config)):
        warnings.warn(f"{where}: expected keys without effect on the model, got {', '.join(ignored)}", stacklevel=2)
    return model


def open_model(path: Path, tokenizer: Tokenizer, bos: str = "") -> tuple[Transformer, Codec]:
    """Open the model in a file (``open_weights``) for a tokenizer, with the ids of the codec. ``bos`` names the token
    that begins a sequence, if its name is not a common one."""
    model = open_weights(path, tokenizer_hash(tokenizer))
    codec, ids = codec_of(tokenizer, len(model.W_U), bos_id(tokenizer, bos))
    whole = torch.equal(ids, torch.arange(len(model.W_U)))
    return model if whole else only(model, ids), codec


def _require_listed(path: Path) -> None:
    """Raise ValueError if the manifest of the model lists another hash for this file. Warn if no manifest lists it."""
    folder = path.absolute().parent.parent
    listed = read_manifest(folder)[0] if (folder / MANIFEST).is_file() else {}
    expected = listed.get(f"{path.absolute().parent.name}/{path.name}")
    if expected is None:
        warnings.warn(f"no manifest lists {path.name}, so a damaged number in it is not noticed", stacklevel=3)
    elif expected != sha256(path):
        raise ValueError(f"{path}: expected the file that {folder / MANIFEST} lists, got another; run `make repro`")


def _config(path: Path, metadata: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """Return the configuration of a file of weights, with older names translated, and where it was found."""
    beside = [p for p in (path.with_suffix(".json"), path.with_name("config.json")) if p.is_file()]
    if "config" not in metadata and not beside:
        raise FileNotFoundError(f"{path}: expected its configuration in {path.stem}.json or config.json, found neither")
    where = f"{path}, entry config" if "config" in metadata else str(beside[0])
    config = parse_json(metadata.get("config") or beside[0].read_text(encoding="utf-8", errors="replace"), where)
    if not isinstance(config, dict):
        raise ValueError(f"{where}: expected the settings of a model by name, got another JSON value; correct it")
    older = {"normalization_type": config["normalization"]} if "normalization" in config else {}
    if "shortformer_pos" in config:
        older["positional_embedding_type"] = "shortformer" if config["shortformer_pos"] else "standard"
    return older | config, where
