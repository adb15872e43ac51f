"""All claims, collected from the files of the themes."""

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
    """Return all claims by id, in the order of the themes."""
    found: list[Claim] = []
    for module in pkgutil.iter_modules(pathsum.claims.__path__):
        stated = getattr(importlib.import_module(f"pathsum.claims.{module.name}"), "CLAIMS", ())
        found += [replace(claim, theme=module.name) for claim in stated]
    return {claim.id: claim for claim in sorted(found, key=lambda claim: THEMES.index(claim.theme))}


def stated() -> dict[str, FrozenClaim]:
    """Return the measure and the threshold of every claim in the code."""
    return {c.id: FrozenClaim(measure=c.measure, threshold=c.threshold) for c in claims().values()}


def judge_all(results: Results) -> tuple[ClaimResult, ...]:
    """Judge every claim, in the order of the themes."""
    return tuple(judge(claim, results) for claim in claims().values())
