"""Stage `verify`: judge every claim on the stored records, and write verdicts, metrics and headline numbers."""

from dataclasses import asdict

from pathsum.claims.metrics import headline, metrics
from pathsum.claims.preregistration import Preregistration, require_as_frozen
from pathsum.claims.registry import judge_all, stated
from pathsum.config import load
from pathsum.core.storage import read_value, write_json
from pipelines import grid
from pipelines.paths import CLAIMS, PREREGISTRATION, REPORTS, THREADS, stage
from pipelines.results import read_results

if __name__ == "__main__":
    with stage(THREADS, arguments=False):
        registered = load(Preregistration, read_value(PREREGISTRATION), str(PREREGISTRATION))
        require_as_frozen(registered, stated())
        results = read_results()
        claims = judge_all(results)
        others = {text: judge_all(found) for text, found in results.texts.items()}
        judged = {grid.full_name(text, c.id): asdict(c) for text, some in {"": claims, **others}.items() for c in some}
        write_json(CLAIMS, judged)
        write_json(REPORTS / "metrics.json", metrics(results, claims, others))
        write_json(REPORTS / "headline.json", headline(results, claims))
