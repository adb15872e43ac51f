"""Stage `statistics`: compute n-grams, entropies and repeats of each text, and the best smoothed bigram model, and
forecast the onset of induction."""

import sys

from pathsum.config import ExtractConfig, load
from pathsum.core.manifest import sha256, write_manifest
from pathsum.core.storage import write_json, write_rows
from pathsum.records.corpus import NGramRow
from pathsum.text.statistics import corpus_statistics
from pipelines import forecast, grid
from pipelines.paths import STATISTICS, THREADS, TOKENS, params, section, stage

if __name__ == "__main__":
    with stage(THREADS, arguments=False):
        for name, values in grid.texts(params()).items():
            summary, ngrams, counts = corpus_statistics(
                TOKENS / name,
                section(values, "corpus", "name"),
                section(values, "model", "n_ctx"),
                load(ExtractConfig, section(values, "extract"), "extract"),
                section(values, "train", "repeat_weight"),
            )
            if expected := forecast.said(values, summary):
                print(f"pathsum: {expected}", file=sys.stderr)
            folder = STATISTICS / name
            write_json(folder / "summary.json", summary)
            write_rows(folder / "ngrams.parquet", ngrams, NGramRow)
            counts.save(folder / "counts.safetensors")
            write_manifest(folder, {path.name: sha256(path) for path in folder.iterdir() if path.is_file()})
