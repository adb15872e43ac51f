"""Benchmarks: time and memory of the suite, as ratios to other code and as growth with each size."""

import pipelines  # noqa: F401 (sets OMP_WAIT_POLICY before torch loads)
