"""The state from which an interrupted run continues: weights, optimizer state, step, name of the run, and hashes of the
log and the checkpoints at this step, in the safetensors format, followed by a sha256."""

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load, save
from torch import Tensor
from torch.optim import Optimizer

from pathsum.core.manifest import sha256
from pathsum.core.storage import write_whole
from pathsum.model.transformer import Transformer
from pathsum.training.store import LOG, log_until

STATE = "state.bin"
_DIGEST = 32  # bytes


def save_state(run: Path, model: Transformer, opts: list[Optimizer], step: int, stored: Mapping[str, str]) -> None:
    """Write a state to ``run`` atomically, in place of the one before it."""
    if not all(bool(p.isfinite().all()) for p in model.parameters()):
        return
    tensors = {f"model.{name}": p.detach().contiguous() for name, p in model.named_parameters()}
    for i, opt in enumerate(opts):
        for j, state in opt.state_dict()["state"].items():
            tensors |= {f"opt.{i}.{j}.{name}": value.contiguous() for name, value in state.items()}
    tensors["step"] = torch.tensor(step)
    about = json.dumps([run.name, stored], sort_keys=True)
    tensors["about"] = torch.tensor([*about.encode()], dtype=torch.uint8)
    content = save(tensors)
    write_whole(run / STATE, content + hashlib.sha256(content).digest())


def load_state(run: Path, model: Transformer, opts: list[Optimizer]) -> tuple[int, dict[str, str]]:
    """Restore the stored state into ``model`` and ``opts``, and return its step and the hashes of stored files."""
    path = run / STATE
    if not path.exists():
        return -1, {}
    tensors = _tensors(path.read_bytes())
    if tensors is not None:
        step, (name, stored) = int(tensors["step"]), json.loads(bytes(tensors["about"].tolist()))
        if name == run.name and _as_stored(run, step, stored):
            _restore(tensors, model, opts)
            return step, stored
    print(f"{path}: does not fit the log and the checkpoints; training starts again", file=sys.stderr)
    return -1, {}


def _tensors(content: bytes) -> dict[str, Tensor] | None:
    body, digest = content[:-_DIGEST], content[-_DIGEST:]
    tensors = load(body) if hashlib.sha256(body).digest() == digest else {}
    return tensors if {"step", "about"} <= tensors.keys() else None


def _as_stored(run: Path, step: int, stored: Mapping[str, str]) -> bool:
    """Return whether the log up to ``step`` and the checkpoints are those whose hashes are ``stored``."""
    log = hashlib.sha256(log_until(run / LOG, step)).hexdigest()
    others = ((run / name, digest) for name, digest in stored.items() if name != LOG)
    return log == stored[LOG] and all(path.is_file() and sha256(path) == digest for path, digest in others)


def _restore(tensors: Mapping[str, Tensor], model: Transformer, opts: list[Optimizer]) -> None:
    model.load_state_dict({k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")})
    for i, opt in enumerate(opts):
        blank, params = opt.state_dict(), [p for group in opt.param_groups for p in group["params"]]
        for key, value in tensors.items():
            if key.startswith(f"opt.{i}."):
                _, _, j, name = key.split(".", 3)
                p = params[int(j)]
                if value.shape == p.shape:  # fused kernels need the memory layout of the parameter
                    value = torch.empty_like(p).copy_(value)
                blank["state"].setdefault(int(j), {})[name] = value
        opt.load_state_dict(blank)
