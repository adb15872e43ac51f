"""pathsum: a reproduction of *A Mathematical Framework for Transformer Circuits* (Elhage et al. 2021), with exactness
checks. ``pathsum.load`` opens a model; docs/api.md shows what can be asked of it."""

import importlib
from typing import Any

_HOMES = {"load": "pathsum.api", "Model": "pathsum.api", "Attention": "pathsum.api"}
_HOMES |= {"export": "pathsum.exporting", "hand_made": ""}
__all__ = ["Attention", "Model", "export", "hand_made", "load"]


def __getattr__(name: str) -> Any:
    """Import what is asked for, since a stage that needs one module need not wait for all others."""
    if name not in _HOMES:
        raise AttributeError(f"module 'pathsum' has no attribute {name!r}")
    home = _HOMES[name]
    return getattr(importlib.import_module(home), name) if home else importlib.import_module(f"pathsum.{name}")


def __dir__() -> list[str]:
    return __all__
