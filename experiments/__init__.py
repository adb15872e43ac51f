"""Experiments that train models outside the grid: when does the phase change come, and on what does it depend?"""

import pipelines  # noqa: F401 (sets the wait policy of threads, before torch loads)
