"""Experiments that train models outside the grid, to find when the phase change occurs and what it depends on."""

import pipelines  # noqa: F401 (sets OMP_WAIT_POLICY before torch loads)
