"""Write the measure and the threshold of every claim in the code to conf/claims.yaml, before the grid is trained:

python -m pipelines.freeze --date YYYY-MM-DD
"""

import argparse
from pathlib import Path

import yaml

from pathsum.claims.preregistration import Preregistration
from pathsum.claims.registry import stated
from pathsum.config import load
from pathsum.core.storage import write_whole
from pipelines.handwritten import read_preregistration
from pipelines.paths import PREREGISTERED, stage

HEAD = """\
# What was fixed before the grid ran. `protocol` is written by hand; `python -m pipelines.freeze --date YYYY-MM-DD`
# fills in `claims` from the code and the date. What changes afterwards is listed under `changes`, by hand:
# {claim, date, what: threshold | measure | computation | retrained | added | removed, why, old, new}
"""


def freeze(path: Path, date: str, again: bool) -> None:
    """Write the claims of the code, frozen on ``date``, to ``path``."""
    before = read_preregistration(path)
    if before.frozen and not again:
        raise ValueError(
            f"{path} was frozen on {before.frozen}. List what has changed since under `changes` in this file. If the "
            "grid has not been trained yet, freeze again with --again, which discards the frozen claims and changes"
        )
    if not (before.protocol.statements and before.protocol.tuning_seeds):
        raise ValueError(f"{path}: expected protocol.tuning_seeds and protocol.statements, got none; write them first")
    now = load(Preregistration, {"frozen": date, "protocol": before.protocol, "claims": stated()}, "--date")
    values = now.model_dump(exclude={"sha256"}) | {"changes": []}
    values["protocol"]["tuning_seeds"] = list(now.protocol.tuning_seeds)
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=118)
    write_whole(path, (HEAD + text).encode())
    print(f"{path}: {len(now.claims)} claims frozen on {date}, SHA-256 {read_preregistration(path).sha256}…")


if __name__ == "__main__":
    with stage(threads=0):
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("--date", required=True, help="today, as YYYY-MM-DD")
        parser.add_argument("--again", action="store_true", help="discard the frozen claims and their changes")
        given = parser.parse_args()
        freeze(PREREGISTERED, given.date, given.again)
