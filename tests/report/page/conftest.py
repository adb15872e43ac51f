"""The report of tests/report in a browser, for tests of its page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.conftest import full, results
from tests.report.page.browser import CHROMIUM, Browser, reading

__all__ = ["full", "results"]


@pytest.fixture(scope="session")
def opened(full: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """The report on a phone."""
    if not CHROMIUM:
        pytest.skip("no chromium on this machine")
    with reading(full, tmp_path_factory.mktemp("browser"), 390) as browser:
        yield browser
