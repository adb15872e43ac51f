"""“Watch it learn” as a reader has it: slider, keys and pointer show the patterns that torch computes."""

from itertools import pairwise

import pytest

from pathsum.claims.formatting import spelled
from pathsum.records.results import Results
from pathsum.report.page.watch_it_learn import LEVELS
from tests.report import synthetic
from tests.report.page.browser import Browser
from tests.report.page.watched import NAME, patterns_at

TOKENS = "#w-tokens button"
SIZE = 1 + len(synthetic.HOSTILE)
STEP = 0.5 / LEVELS + 0.5 / 255  # the page's rounding and the record's
SHADES = """(() => {
    const shown = document.querySelector('#w-matrix');
    const read = new OffscreenCanvas(shown.width, shown.height).getContext('2d', {willReadFrequently: true});
    read.drawImage(shown, 0, 0);
    return [...read.getImageData(0, 0, shown.width, shown.height).data].filter((_, i) => i % 4 === 3);
})()"""


@pytest.fixture
def page(opened: Browser) -> Browser:
    """The model of two layers on its first passage, at the last checkpoint."""
    opened.choose("#w-model", NAME)
    opened.until(f"document.querySelector('#w-head').textContent.includes(' of {spelled(NAME)}')")
    opened.choose("#w-passage", "0")
    opened.choose("#w-at", str(synthetic.EVALS - 1))
    return opened


def shown_checkpoint(page: Browser) -> int:
    return int(page.text("#w-scores").split()[1]) - 1


def test_the_matrix_is_the_pattern_of_torch_at_every_checkpoint_asked_for(page: Browser) -> None:
    for checkpoint, passage, head in ((0, 0, 3), (5, 1, 0), (synthetic.EVALS - 1, 1, 2)):
        page.choose("#w-passage", str(passage))
        page.choose("#w-at", str(checkpoint))
        page.click(f"#w-heads [data-head='{head}']")
        exact = patterns_at(checkpoint, passage, SIZE)[head // 2][0, head % 2]
        shades = page.ask(SHADES)
        assert len(shades) == SIZE * SIZE
        for i, shade in enumerate(shades):
            assert shade / 255 == pytest.approx(exact[divmod(i, SIZE)].item(), abs=STEP + 1e-6)
        page.ask(f"[6, 7].forEach((i) => document.querySelectorAll('{TOKENS}')[i].focus())")
        said = page.text("#w-said")
        key = int(exact[7].argmax())
        assert f" ({key}): " in said
        assert float(said.split()[-2]) / 100 == pytest.approx(exact[7, key].item(), abs=STEP + 0.005)


def test_value_weighted_attention_is_of_the_last_checkpoint(page: Browser) -> None:
    page.choose("#w-at", "2")
    page.choose("#w-kind", "weighted")
    assert shown_checkpoint(page) == synthetic.EVALS - 1
    page.click("#w-heads [data-head='0']")
    exact = patterns_at(synthetic.EVALS, 0, SIZE)[0][0, 0].flatten().tolist()
    assert [s / 255 for s in page.ask(SHADES)] == pytest.approx(exact, abs=STEP + 1e-6)
    page.choose("#w-at", "2")
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
    assert page.text("#w-onset") == f"onset: {onset / 1e6:.2f} M"
    page.choose("#w-model", "L1H2S0")
    page.until("document.querySelector('#w-onset').textContent === 'no onset'")


def test_play_ends_at_the_last_checkpoint_and_moves_by_one_where_motion_is_unwanted(page: Browser) -> None:
    page.choose("#w-at", str(synthetic.EVALS - 2))
    page.click("#w-play")
    assert "Pause" in page.text("#w-play")
    page.until("document.querySelector('#w-play').textContent.includes('Play')")
    assert shown_checkpoint(page) == synthetic.EVALS - 1
    page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    page.until("document.querySelector('#w-play').textContent.includes('Next')")
    page.click("#w-play")
    assert shown_checkpoint(page) == 0
    page.send("Emulation.setEmulatedMedia", features=[])


def test_pointer_and_keys_choose_a_pair_of_tokens(page: Browser) -> None:
    page.hover("#w-matrix", 0)  # the middle
    assert f"({SIZE // 2}) attends to" in page.text("#w-said")
    page.ask("document.querySelector('#w-matrix').focus()")
    page.press("ArrowDown")
    page.press("ArrowLeft")
    assert f"({SIZE // 2 + 1}) attends to" in page.text("#w-said")
    assert f"({SIZE // 2 - 1}): " in page.text("#w-said")
