"""Stage `verify`: hold every claim of the paper against every cell."""

from __future__ import annotations

from dataclasses import asdict

from pathsum.report.claims import judge_all
from pathsum.report.metrics import metrics
from pathsum.storage import write_json
from pipelines.paths import CLAIMS, REPORTS, stage
from pipelines.results import read_results

if __name__ == "__main__":
    with stage():
        results = read_results()
        claims = judge_all(results)
        write_json(CLAIMS, {claim.id: asdict(claim) for claim in claims})
        write_json(REPORTS / "metrics.json", metrics(results, claims))
