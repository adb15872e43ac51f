"""Stage `statistics`: compute n-grams and entropies of the corpus, and the best smoothed bigram model."""

from pathsum.config import ExtractConfig, load
from pathsum.core.manifest import write_manifest
from pathsum.core.storage import write_json, write_rows
from pathsum.records.corpus import NGramRow
from pathsum.text.statistics import corpus_statistics
from pipelines.paths import STATISTICS, THREADS, TOKENS, params, section, stage

if __name__ == "__main__":
    with stage(THREADS, arguments=False):
        values = params()
        summary, ngrams, counts = corpus_statistics(
            TOKENS,
            section(values, "corpus", "name"),
            section(values, "model", "n_ctx"),
            load(ExtractConfig, section(values, "extract"), "extract"),
        )
        write_json(STATISTICS / "summary.json", summary)
        write_rows(STATISTICS / "ngrams.parquet", ngrams, NGramRow)
        counts.save(STATISTICS / "counts.safetensors")
        write_manifest(STATISTICS)
