"""Compare the logits of imported models with those of TransformerLens: `python -m bench.imported FOLDER`

The models cover every supported kind of positions and normalization, with random biases and gains. TransformerLens
computes in float32. It is not a dependency of this project and may need another version of torch, so there are two
steps. `python -m bench.imported FOLDER --write`, in an environment with TransformerLens (`pip install
'transformer_lens<4' safetensors`), writes weights, configurations, tokens and logits. Without ``--write``, in the
environment of this project, the logits are computed and compared. The exit status is 1 if any logit differs by more
than 1e-4.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

TOLERANCE = 1e-4
POSITIONS: tuple[dict[str, Any], ...] = (
    {"positional_embedding_type": "shortformer"},
    {"positional_embedding_type": "standard"},
    {"positional_embedding_type": "rotary"},
    {"positional_embedding_type": "rotary", "rotary_dim": 12, "rotary_adjacent_pairs": True, "rotary_base": 500},
)
NORMS = ("LN", "LNPre", "RMS", "RMSPre", None)
SHAPE = {"d_model": 48, "d_head": 16, "n_heads": 3, "n_ctx": 61, "d_vocab": 101, "attn_only": True, "device": "cpu"}


def write(folder: Path) -> None:
    """Write the weights, configuration, tokens and TransformerLens logits of every model to ``folder``."""
    from transformer_lens import HookedTransformer, HookedTransformerConfig  # optional dependency

    for number, (n_layers, positions, norm) in enumerate(product((0, 1, 3), POSITIONS, NORMS)):
        extra = {"use_attn_scale": False} if number % 5 == 2 else {}
        shape = SHAPE | positions | extra
        model = HookedTransformer(HookedTransformerConfig(**shape, n_layers=n_layers, normalization_type=norm))
        torch.manual_seed(number)
        for name, parameter in model.named_parameters():
            center = 1.0 if name.endswith("ln1.w") or name == "ln_final.w" else 0.0
            parameter.data = center + torch.randn_like(parameter) / 48**0.5
        tokens = torch.randint(SHAPE["d_vocab"], (2, SHAPE["n_ctx"]))
        here = folder / f"{number:02}"
        here.mkdir(parents=True, exist_ok=True)
        save_file({k: v.contiguous() for k, v in model.state_dict().items()}, here / "model.safetensors")
        (here / "config.json").write_text(json.dumps(model.cfg.to_dict(), default=str))
        with torch.no_grad():
            save_file({"tokens": tokens, "logits": model(tokens)}, here / "expected.safetensors")
        print(here, n_layers, positions, norm)


def compare(folder: Path) -> None:
    """Compare the logits of this project with those in ``folder``, print the differences, and exit.

    The exit status is 1 if a difference exceeds TOLERANCE or if there are no models.
    """
    from pathsum.imported.open_weights import open_weights

    differences = []
    for here in sorted(p for p in folder.iterdir() if p.is_dir()):
        expected = load_file(here / "expected.safetensors")
        logits = open_weights(here / "model.safetensors", "").trace(expected["tokens"]).logits
        differences.append((logits - expected["logits"]).abs().max().item())
        largest = expected["logits"].abs().max()
        print(f"{here.name}: largest difference {differences[-1]:.1e}, largest logit {largest:.2f}")
    print(f"{len(differences)} models, largest difference {max(differences, default=0):.1e}")
    raise SystemExit(not differences or max(differences) > TOLERANCE)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="write the models (needs TransformerLens)")
    arguments = parser.parse_args()
    if not arguments.write and not arguments.folder.is_dir():
        parser.error(f"expected a folder that --write has made, got {arguments.folder}")
    (write if arguments.write else compare)(arguments.folder)
