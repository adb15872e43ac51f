"""Every claim, found in the files of the themes."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from dataclasses import replace

import pathsum.claims
from pathsum.claims.judging import Claim, judge
from pathsum.claims.preregistration import FrozenClaim
from pathsum.claims.themes import THEMES
from pathsum.records.results import Results
from pathsum.records.verdicts import ClaimResult


@functools.cache
def claims() -> dict[str, Claim]:
    """Return the claims by id, in the order of the themes. Each knows the theme that states it."""
    present = {module.name for module in pkgutil.iter_modules(pathsum.claims.__path__)}
    found: dict[str, Claim] = {}
    for theme in (name for name in THEMES if name in present):
        module = importlib.import_module(f"pathsum.claims.{theme}")
        found |= {claim.id: replace(claim, theme=theme) for claim in getattr(module, "CLAIMS", ())}
    return found


def stated() -> dict[str, FrozenClaim]:
    """Return the measure and the threshold of every claim, as they stand in the code."""
    return {c.id: FrozenClaim(measure=c.measure, threshold=c.threshold) for c in claims().values()}


def judge_all(results: Results) -> tuple[ClaimResult, ...]:
    """Judge every claim, in the order of the themes."""
    return tuple(judge(claim, results) for claim in claims().values())
