"""Checkpoints of models: safetensors files, never pickles, bound to the tokenizer that the model was trained with."""

import hashlib
import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from pathsum.config import ModelConfig, load
from pathsum.core.storage import parse_json, write_whole
from pathsum.model.transformer import Transformer


def save_checkpoint(path: Path, model: Transformer, tokenizer_hash: str) -> None:
    """Write ``model`` to ``path`` in float32, atomically, with its configuration, d_vocab and ``tokenizer_hash`` in the
    header. Equal models and hashes give equal bytes."""
    d_vocab = model.W_U.shape[0]
    about = {"model": model.config.model_dump(), "d_vocab": d_vocab, "tokenizer_hash": tokenizer_hash}
    tensors = {name: p.detach().float().contiguous().cpu() for name, p in model.named_parameters()}
    write_whole(path, save(tensors, metadata={"pathsum": json.dumps(about, sort_keys=True)}))


def load_checkpoint(path: Path, tokenizer_hash: str, dtype: torch.dtype = torch.float32) -> Transformer:
    """Load the model at ``path`` with data type ``dtype``, in evaluation mode and without gradients.

    Raises FileNotFoundError if there is no file, and ValueError if it is truncated or was not written by this project,
    if the model was trained with another tokenizer than that with ``tokenizer_hash``, or if the weights are not finite
    or do not fit the configuration in the file's header.
    """
    if not path.is_file():
        raise FileNotFoundError(f"expected a checkpoint at {path}, found none; `dvc repro` trains it")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = (file.metadata() or {}).get("pathsum")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except SafetensorError as error:
        raise ValueError(f"{path}: expected a whole safetensors file, got another ({error}); delete it") from error
    about = parse_json(metadata or "null", f"{path}, entry pathsum")
    if not isinstance(about, dict) or not isinstance(about.get("d_vocab"), int):
        raise ValueError(f"{path}: expected pathsum's header with model and d_vocab, got {metadata!r:.80}")
    if about.get("tokenizer_hash") != tokenizer_hash:
        raise ValueError(
            f"{path}: trained with tokenizer {str(about.get('tokenizer_hash'))[:12]}, got {tokenizer_hash[:12]}; "
            "train again, or give the tokenizer that it came with"
        )
    config, d_vocab = load(ModelConfig, about.get("model"), f"{path.name}.model"), about["d_vocab"]
    stated = 2 * d_vocab * config.d_model + 4 * config.n_layers * config.n_heads * config.d_head * config.d_model
    stored = sum(tensor.numel() for tensor in tensors.values())
    if not 0 < stated <= stored:
        raise ValueError(f"{path}: expected the weights of the model in its header, {stated:,} numbers, got {stored:,}")
    model = Transformer(config, d_vocab, torch.Generator())
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise ValueError(f"{path}: expected the weights of the model in its header, got others ({error})") from error
    if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
        raise ValueError(f"{path}: expected finite weights, got NaN or infinity; delete it and train again")
    return model.to(dtype).eval().requires_grad_(False)


def weights_hash(model: Transformer) -> str:
    """Return the sha256 of the float32 weights and biases and their names, which identifies the model in records."""
    digest = hashlib.sha256()
    for name, p in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(p.detach().float().contiguous().cpu().numpy().tobytes())
    return digest.hexdigest()
