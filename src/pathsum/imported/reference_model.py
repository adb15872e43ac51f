"""Open a model that ``pathsum.export`` wrote for ``pathsum.reference``."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, float32, promote_types

from pathsum.core.weights import Head, Weights
from pathsum.model.opened import Constants, Opened, Rotation


def from_reference(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> Opened:
    """Return the model of a state dict and its configuration, in at least float32. ValueError if they do not fit."""
    state = {name: tensor.to(promote_types(tensor.dtype, float32)) for name, tensor in state.items()}
    try:
        about, n_layers = config["model"], sum(name.startswith("joining.") for name in state) - 1
        parts = [
            {n.split(".")[2]: t for n, t in state.items() if n.startswith(f"layers.{i}.")} for i in range(n_layers)
        ]
        layers = tuple(tuple(map(Head, p["W_Q"], p["W_K"], p["W_V"], p["W_O"])) for p in parts)
        b_O = [state[f"joining.{i}"][0] for i in range(1, n_layers + 1)]
        added = [Constants(p["b_Q"], p["b_K"], p["b_V"], b, p["bias"]) for b, p in zip(b_O, parts, strict=True)]
        rotations = [Rotation(p["cos"], p["sin"], about["adjacent"]) for p in parts[:1] if p["cos"].shape[1]]
        made = Opened(
            Weights(state["W_E"], state["W_U"], layers), added, state["joining.0"], state["b_U"], about["norm"],
            about["eps"], config["n_ctx"], config["positions"], *rotations,
        )  # fmt: skip
        made.load_state_dict(state)
    except (KeyError, TypeError, RuntimeError) as error:
        raise ValueError(f"expected the tensors and the configuration of an export, got others ({error})") from error
    return made
