"""Open models from safetensors files. Pickles are never opened."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from pathsum.core.manifest import MANIFEST, read_manifest, sha256
from pathsum.core.storage import parse_json
from pathsum.imported.model import CheckpointModel, Imported
from pathsum.imported.refusals import unread
from pathsum.imported.transformer_lens import from_transformer_lens
from pathsum.model.checkpoint import load_checkpoint

PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl")


def open_weights(path: Path, tokenizer_hash: str) -> Imported:
    """Open the model in a safetensors file: a checkpoint of this project, or weights with TransformerLens's names.

    Weights with TransformerLens's names take their configuration from the entry ``config`` (JSON) of the file's
    metadata, or from the file ``<name>.json`` or ``config.json`` in its folder. A model from a checkpoint is in
    float32, another in float64. Ids are those of the file (see ``Imported.bos_first``). Warns about keys of the
    configuration that are not read and that may change what the model computes, about a second configuration, about
    attention biases without a b_U (taken as 0), and about a checkpoint that no manifest lists. Raises FileNotFoundError
    if a file is missing. Raises ValueError if the weights cannot be read or represented, if a checkpoint differs from
    its manifest, or if the tokenizer that it was trained with does not have the hash ``tokenizer_hash``.
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
    except (SafetensorError, OSError) as error:
        if getattr(error, "filename", None):
            raise
        raise ValueError(f"{path}: expected a whole safetensors file ({error}); copy or convert it again") from error
    if "pathsum" in metadata:
        _require_listed(path)
        return CheckpointModel(load_checkpoint(path, tokenizer_hash))
    config, where = _config(path, metadata)
    try:
        model = from_transformer_lens(state, config)
    except ValueError as error:
        raise ValueError(f"{path}, with the configuration in {where}: {error}") from error
    if ignored := unread(config):
        warnings.warn(
            f"the configuration of {path.name} has keys that are not read here; make sure that they do not change what "
            f"the model computes: {', '.join(ignored)}",
            stacklevel=2,
        )
    if "unembed.b_U" not in state and any(".attn.b_" in name for name in state):
        warnings.warn(f"{path.name} has biases of attention but no unembed.b_U, which is taken as 0", stacklevel=2)
    return model


def _require_listed(path: Path) -> None:
    """Raise ValueError if the manifest in the parent of the checkpoint's folder cannot be read or lists another hash
    for this file. Warn if no manifest lists it."""
    folder = path.absolute().parent.parent
    try:
        hashes = read_manifest(folder)[0] if (folder / MANIFEST).is_file() else {}
        listed = hashes.get(path.absolute().relative_to(folder).as_posix())
    except ValueError as error:
        raise ValueError(
            f"{folder / MANIFEST}: expected the hashes of the model's files, got something else ({error}); run `make "
            "repro`, which makes it again"
        ) from error
    if listed is None:
        warnings.warn(f"no manifest lists {path.name}, so a damaged number in it is not noticed", stacklevel=2)
    elif listed != sha256(path):
        raise ValueError(
            f"{path}: expected the file that {folder / MANIFEST} lists, got one that has changed since it was written; "
            "run `make repro`, which makes it again"
        )


def _config(path: Path, metadata: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """Return the configuration that belongs to a file of weights, with TransformerLens's older names translated to
    current ones, and where it was found."""
    neighbors = [p for p in (path.with_suffix(".json"), path.with_name("config.json")) if p.is_file()]
    if "config" not in metadata and not neighbors:
        raise FileNotFoundError(
            f"{path}: expected its configuration in {path.with_suffix('.json').name} or config.json next to it, found "
            'neither; write one, such as {"normalization_type": "LN", "positional_embedding_type": "shortformer", '
            '"n_ctx": 1024}'
        )
    if "config" in metadata and neighbors:
        warnings.warn(f"{neighbors[0]} is not read, because {path.name} has an entry config of its own", stacklevel=2)
    where = f"{path}, entry config" if "config" in metadata else str(neighbors[0])
    config = _settings(metadata["config"] if "config" in metadata else _text(neighbors[0]), where)
    if not isinstance(config, dict):
        raise ValueError(f"{where}: expected the settings of a model by name, got another JSON value; correct it")
    older: dict[str, Any] = {}
    if "normalization" in config:
        older["normalization_type"] = config["normalization"]
    if "shortformer_pos" in config:
        older["positional_embedding_type"] = "shortformer" if config["shortformer_pos"] else "standard"
    for name, value in older.items():
        if config.get(name, value) != value:
            raise ValueError(
                f"{where}: {name} is {config[name]!r}, but {value!r} under the older name of this setting; remove one"
            )
    return config | older, where


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected text in UTF-8, got other bytes ({error}); save it in UTF-8") from error


def _settings(text: str, where: str) -> Any:
    """Return the JSON value of ``text``, which was read from ``where``."""
    parse_json(text, where)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"{where}: expected each key once, got {twice!r} twice; remove the wrong one")
        return found

    return json.loads(text, object_pairs_hook=once)
