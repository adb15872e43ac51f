"""The report of tests/report, for tests of its page."""

from __future__ import annotations

from tests.report.conftest import full, results

__all__ = ["full", "results"]
