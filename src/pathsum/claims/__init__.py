"""The papers' claims and this suite's own as data, each with the measurement that decides it and its threshold.

AMF is *A Mathematical Framework for Transformer Circuits* (Elhage et al. 2021), ICL is *In-context Learning and
Induction Heads* (Olsson et al. 2022). A claim is judged a model at a time: reproduced where every model it speaks about
passes, partly where some do, not where none does, "not testable here" where there is no such model.
"""

from __future__ import annotations

from pathsum.claims import (
    causal,
    controls,
    copying,
    formation,
    framework,
    joint_ablation,
    onset_twins,
    score_paths,
    softmax_competition,
    sufficiency,
    suffixes,
)
from pathsum.claims.judging import Claim, judge
from pathsum.claims.preregistration import FrozenClaim
from pathsum.records.results import Results
from pathsum.records.verdicts import ClaimResult

CLAIMS: tuple[Claim, ...] = (
    *framework.CLAIMS,
    *copying.CLAIMS,
    *causal.CLAIMS,
    *score_paths.CLAIMS,
    *suffixes.CLAIMS,
    *sufficiency.CLAIMS,
    *softmax_competition.CLAIMS,
    *formation.CLAIMS,
    *joint_ablation.CLAIMS,
    *controls.CLAIMS,
    *onset_twins.CLAIMS,
)


def stated() -> dict[str, FrozenClaim]:
    """Measure and threshold of every claim, as they stand in the code."""
    return {c.id: FrozenClaim(measure=c.measure, threshold=c.threshold) for c in CLAIMS}


def judge_all(results: Results) -> tuple[ClaimResult, ...]:
    """Every claim, in the report's order."""
    return tuple(judge(claim, results) for claim in CLAIMS)
