"""Time and memory of the suite, as ratios to other code and as growth with each size."""

import pipelines  # noqa: F401 (sets the wait policy of threads, before torch loads)
