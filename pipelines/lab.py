"""Read what the report's lab runs in the browser: models, tokenizer and text."""

from __future__ import annotations

from typing import Any

from pathsum.config import ExtractConfig, load
from pathsum.core.manifest import require_whole
from pathsum.model.checkpoint import load_checkpoint
from pathsum.records.results import Results
from pathsum.report.figures.detail import in_detail
from pathsum.report.page.lab import export, runs_on_page
from pathsum.text.tokenizer import load_tokenizer, tokenizer_hash
from pathsum.text.tokens import read_tokens
from pathsum.text.windows import HeldOut
from pipelines.paths import MODELS, TOKENS, params, section


def read_lab(results: Results) -> dict[str, Any]:
    """Return the data of the lab: the tokenizer, the held-out windows on which the records measure behavior, and the
    last checkpoints of the models that the report shows in detail, if the lab can run them."""
    values = params()
    config = load(ExtractConfig, section(values, "extract"), "extract")
    tokenizer = load_tokenizer(TOKENS / "tokenizer.json")
    for cell in in_detail(results).values():
        require_whole(MODELS / cell.name)
    last = [max((MODELS / cell.name / "checkpoints").iterdir()) for cell in in_detail(results).values()]
    loaded = {path.parts[-3]: load_checkpoint(path, tokenizer_hash(tokenizer)) for path in last}
    models = {name: model for name, model in loaded.items() if runs_on_page(model.config)}
    n_ctx = max((model.config.n_ctx for model in models.values()), default=section(values, "model", "n_ctx"))
    tokens = read_tokens(TOKENS / "verdict.bin").tokens
    held_out = HeldOut.of(tokens, n_ctx, config.windows_per_document, config.held_out_windows)
    return export(models, tokenizer, held_out.batch(config.windows))
