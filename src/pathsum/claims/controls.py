"""The claim that one layer forms induction heads if each key also contains the previous token's key (smeared keys)."""

from pathsum.claims import samples
from pathsum.claims.judging import Claim, Finding, at_least
from pathsum.records.results import FORMED, Results

NOT_FORMED = 0.05  # best prefix-matching score up to which a model has no induction head


def _smeared(results: Results) -> dict[str, Finding]:
    return {
        name: at_least(c.summary.prefix_matching, FORMED)
        for name, c in results.controls.items()
        if c.summary.smeared_keys and c.summary.n_layers == 1
    }


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "smeared_keys_induction",
        "One layer forms induction heads where its keys can see the token before.",
        "ICL, Argument 2",
        "best prefix-matching score of the one-layer control with smeared keys",
        f"≥ {FORMED}",
        _smeared,
        chance=samples.uniform(
            "induction: uniform", lambda results: [c for c in results.controls.values() if c.summary.smeared_keys]
        ),
        sample=samples.REPEATS,
        unit="mean attention, 0 to 1",
    ),
)
