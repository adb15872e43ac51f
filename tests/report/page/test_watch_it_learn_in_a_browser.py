"""“Watch it learn” as a reader has it: slider, keys and pointer show the patterns that torch computes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from pathsum.claims.formatting import spelled
from pathsum.records.results import Results
from pathsum.report.figures.symbols import visible
from pathsum.report.page.watch_it_learn import LEVELS
from tests.report import synthetic
from tests.report.page.browser import CHROMIUM, Browser
from tests.report.page.watched import NAME, patterns_at

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no chromium on this machine")

TOKENS = "#w-tokens button"
SIZE = 1 + len(synthetic.HOSTILE)
STEP = 0.5 / LEVELS + 0.5 / 255  # the page's rounding and the record's
SHADES = """(() => {
    const shown = document.querySelector('#w-matrix');
    const read = new OffscreenCanvas(shown.width, shown.height).getContext('2d', {willReadFrequently: true});
    read.drawImage(shown, 0, 0);
    return [...read.getImageData(0, 0, shown.width, shown.height).data].filter((_, i) => i % 4 === 3);
})()"""


@pytest.fixture(scope="module")
def opened(full: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("watch"), 390) as browser:
        browser.open_report(full)
        browser.until("document.querySelector('#w-said').textContent")
        yield browser
        assert browser.complaints == []
        assert [r for r in browser.requests if not r.startswith("data:")] == [(full / "index.html").as_uri()]


@pytest.fixture
def page(opened: Browser) -> Browser:
    """The model of two layers on its first passage, at the last checkpoint."""
    choose(opened, "model", NAME)
    opened.until(f"document.querySelector('#w-head').textContent.includes(' of {spelled(NAME)}')")
    choose(opened, "passage", "0")
    choose(opened, "at", str(synthetic.EVALS - 1))
    return opened


def choose(page: Browser, control: str, value: str) -> None:
    page.ask(
        f"(() => {{ const c = document.querySelector('#w-{control}'); c.value = {json.dumps(value)}; "
        "for (const kind of ['input', 'change']) c.dispatchEvent(new Event(kind, {bubbles: true})); })()"
    )


def text(page: Browser, selector: str) -> str:
    return str(page.ask(f"document.querySelector({json.dumps(selector)}).textContent"))


def shown_checkpoint(page: Browser) -> int:
    return int(text(page, "#w-scores").split()[1]) - 1


def test_the_matrix_is_the_pattern_of_torch_at_every_checkpoint_asked_for(page: Browser) -> None:
    for checkpoint, passage, head in ((0, 0, 3), (5, 1, 0), (synthetic.EVALS - 1, 1, 2)):
        choose(page, "passage", str(passage))
        choose(page, "at", str(checkpoint))
        page.ask(f"document.querySelector('#w-heads [data-head=\"{head}\"]').click()")
        exact = patterns_at(checkpoint, passage, SIZE)[head // 2][0, head % 2]
        shades = page.ask(SHADES)
        assert len(shades) == SIZE * SIZE
        for i, shade in enumerate(shades):
            assert shade / 255 == pytest.approx(exact[divmod(i, SIZE)].item(), abs=STEP + 1e-6)
        page.ask(f"document.querySelectorAll('{TOKENS}')[7].focus()")
        said = text(page, "#w-said")
        key = int(exact[7].argmax())
        assert f" ({key}): " in said
        assert float(said.split()[-2]) / 100 == pytest.approx(exact[7, key].item(), abs=STEP + 0.005)


def test_value_weighted_attention_is_of_the_last_checkpoint(page: Browser) -> None:
    choose(page, "at", "2")
    choose(page, "kind", "weighted")
    assert shown_checkpoint(page) == synthetic.EVALS - 1
    page.ask("document.querySelector('#w-heads [data-head=\"0\"]').click()")
    exact = patterns_at(synthetic.EVALS, 0, SIZE)[0][0, 0].flatten().tolist()
    assert [s / 255 for s in page.ask(SHADES)] == pytest.approx(exact, abs=STEP + 1e-6)
    choose(page, "at", "2")
    assert page.ask("document.querySelector('#w-kind').value") == ""


def test_arrow_keys_move_through_training(page: Browser, results: Results) -> None:
    log = results.cells[NAME].log
    page.ask("document.querySelector('#w-at').focus()")
    for key, now in (("Home", 0), ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", len(log) - 1)):
        page.press(key)
        assert shown_checkpoint(page) == now
        said = page.ask("document.querySelector('#w-at').getAttribute('aria-valuetext')")
        assert f"loss {log[now].val_loss_nats:.2f} nats" in said
    page.ask("document.querySelector('#w-heads button').focus()")
    page.press("ArrowLeft")
    assert shown_checkpoint(page) == len(log) - 2


def test_the_onset_is_marked_where_the_record_says(page: Browser, results: Results) -> None:
    cell = results.cells[NAME]
    onset, seen = cell.summary.onset_tokens, [e.tokens_seen for e in cell.log]
    assert onset is not None
    at, (low, high) = next((i, pair) for i, pair in enumerate(pairwise(seen)) if pair[0] <= onset <= pair[1])
    share = "Number(document.querySelector('#w-onset').style.getPropertyValue('--at'))"
    assert page.ask(share) == pytest.approx((at + (onset - low) / (high - low)) / (len(seen) - 1), abs=1e-9)
    assert text(page, "#w-onset") == f"onset: {onset / 1e6:.2f} M"
    choose(page, "model", "L1H2S0")
    page.until("document.querySelector('#w-onset').textContent === 'no onset'")


def test_play_ends_at_the_last_checkpoint_and_moves_by_one_where_motion_is_unwanted(page: Browser) -> None:
    choose(page, "at", str(synthetic.EVALS - 2))
    page.ask("document.querySelector('#w-play').click()")
    assert "Pause" in text(page, "#w-play")
    page.until("document.querySelector('#w-play').textContent.includes('Play')")
    assert shown_checkpoint(page) == synthetic.EVALS - 1
    page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    page.until("document.querySelector('#w-play').textContent.includes('Next')")
    page.ask("document.querySelector('#w-play').click()")
    assert shown_checkpoint(page) == 0
    assert "Next" in text(page, "#w-play")
    page.send("Emulation.setEmulatedMedia", features=[])


def test_pointer_and_keys_choose_a_pair_of_tokens(page: Browser) -> None:
    page.hover("#w-matrix", 0)  # the middle
    assert page.ask("document.querySelector('#watch').classList.contains('pointing')") is True
    middle = [f"({SIZE // 2})", f"({SIZE // 2})"]
    assert [word for word in text(page, "#w-said").split() if word[0] == "("][:1] == middle[:1]
    page.ask("document.querySelector('#w-matrix').focus()")
    page.press("ArrowDown")
    page.press("ArrowLeft")
    assert f"({SIZE // 2 + 1}) attends to" in text(page, "#w-said")
    assert f"({SIZE // 2 - 1}): " in text(page, "#w-said")


def test_hostile_tokens_are_shown_as_they_are(page: Browser) -> None:
    shown = page.ask(f"[...document.querySelectorAll('{TOKENS}')].map((b) => b.textContent)")
    assert shown == ["<|bos|>", *map(visible, synthetic.HOSTILE)]
    assert page.ask("document.querySelectorAll('.watch img, .watch script').length") == 0


def test_it_fits_a_phone_and_prints_what_it_shows(page: Browser) -> None:
    assert page.ask("document.documentElement.scrollWidth <= innerWidth") is True
    page.emulate("print")
    display = "getComputedStyle(document.querySelector('{}')).display"
    assert page.ask(display.format("#watch")) == "block"
    assert page.ask(display.format("#w-play")) == "none"
    page.emulate("screen")
