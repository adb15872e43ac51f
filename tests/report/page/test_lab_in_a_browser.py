"""The lab as a reader has it: text, interventions and choices change what is shown, and the address holds them."""

import json
import re
import time
from pathlib import Path
from urllib.parse import quote_plus
from xml.etree import ElementTree

import pytest

from tests.report import synthetic
from tests.report.conftest import EARLIER, OTHER
from tests.report.page import small
from tests.report.page.browser import Browser

TOKENS = "#lab-tokens button"


@pytest.fixture
def page(opened: Browser) -> Browser:
    """The lab of two layers on a text."""
    opened.ask("location.hash = ''")
    go(opened, "model=L2H2S0&text=def+f(x):&head=L1H0&token=2")
    return opened


def go(page: Browser, said: str) -> None:
    page.ask("document.querySelector('#lab-link').href = '#'")
    page.ask(f"location.hash = {json.dumps('#lab?' + said)}")
    page.until("document.querySelector('#lab-link').href.includes('#lab?')")


def click(page: Browser, selector: str) -> None:
    before = page.ask("location.hash")
    page.click(selector)
    page.until(f"location.hash !== {json.dumps(before)}")


def choose(page: Browser, control: str, value: str) -> None:
    before = page.ask("location.hash")
    page.choose(control, value)
    page.until(f"location.hash !== {json.dumps(before)}")


def numbers(page: Browser, selector: str) -> list[float]:
    return [float(x.replace("−", "-")) for x in page.texts(selector)]


def test_a_text_is_read_as_the_tokenizer_does(page: Browser) -> None:
    for written in ("class A: pass", small.HOSTILE[9], *(synthetic.HOSTILE[i] for i in (1, 8, 9))):
        choose(page, "#lab-text", written)
        assert len(page.texts(TOKENS)) == min(small.N_CTX, 1 + len(small.tokenizer().encode(written).ids))
    assert page.texts(TOKENS)[:2] != ["<|bos|>", "<|bos|>"]
    choose(page, "#lab-text", "")
    assert page.texts(TOKENS) == ["<|bos|>"]
    assert page.text("#lab-summary").startswith("No text")
    choose(page, "#lab-text", small.HOSTILE[6])
    assert len(page.texts(TOKENS)) == small.N_CTX
    assert f"Only the first {small.N_CTX - 1} tokens are read" in page.text("#lab-summary")


def test_a_model_reads_with_the_tokenizer_of_the_text_that_it_was_trained_on(page: Browser) -> None:
    written = "def f(x): return deep(induction)"
    choose(page, "#lab-text", written)
    for name, words in ((OTHER, small.other_tokenizer()), ("L2H2S0", small.tokenizer())):
        choose(page, "#lab-model", name)
        assert len(page.texts(TOKENS)) == min(small.N_CTX, 1 + len(words.encode(written).ids))
        assert f"among all {words.get_vocab_size()} tokens" in page.text("#lab-summary")
        go(page, f"model={name}&passage=1")
        address = page.ask("document.querySelector('#lab-link').href")
        assert "passage=1" in address
        passage = page.ask("document.querySelector('#lab-text').value")
        assert len(page.texts(TOKENS)) == min(small.N_CTX, 1 + len(words.encode(passage).ids))
        choose(page, "#lab-text", written)


def test_what_is_switched_off_changes_losses_and_is_undone(page: Browser) -> None:
    intact = page.text("#lab-summary")
    assert "intact" not in intact
    choose(page, "#lab-mode", "zero")
    assert "intact model" in page.text("#lab-summary")
    assert page.ask("document.querySelectorAll('#lab-tokens small.more, #lab-tokens small.fewer').length") > 0
    click(page, "[data-edge='L0H1-L1H0-K']")
    assert [t.split(" ")[0] for t in page.texts("#lab-changes button")] == ["1.0", "0.1→1.0"]
    click(page, "#lab-changes button")
    assert page.texts("#lab-changes button") == ["0.1→1.0 keys cut ✕"]
    click(page, "#lab-undo")
    assert page.text("#lab-summary") == intact


def test_a_prediction_is_split_into_paths_that_add_up_as_shown(page: Browser) -> None:
    for changes in ("", "&off=L0H1.mean+L0H0-L1H0-V"):
        go(page, "model=L2H2S0&text=def+f(x):&head=L1H1&token=3" + changes)
        click(page, "#lab-predictions tr:nth-child(4) button")
        parts = numbers(page, "#lab-paths .part")
        assert len(parts) == 7  # the six strongest, and all others together
        assert sum(parts) == pytest.approx(numbers(page, "#lab-paths .total")[0], abs=0.0005 * (len(parts) + 1))
        said = page.text("#lab-score p").replace("−", "-")
        score, distance = map(float, re.findall(r"-?\d+\.\d{3}", said))
        pairs = numbers(page, "#lab-score .pair")
        assert sum(pairs) + distance == pytest.approx(score, abs=0.0005 * (len(pairs) + 2))


def test_paths_that_an_intervention_removes_stay_with_what_they_added(page: Browser) -> None:
    go(page, "model=L2H2S0&text=def+f(x):&head=L1H1&token=3")
    intact = numbers(page, "#lab-paths .part")
    page.ask("document.querySelector('#lab-head').scrollIntoView()")
    choose(page, "#lab-mode", "zero")
    parts, before = (numbers(page, f"#lab-paths .{kind}") for kind in ("part", "before"))
    assert sum(before) == pytest.approx(sum(intact), abs=0.0005 * 14)  # with those through the head, which are gone
    assert sum(parts) != pytest.approx(sum(before), abs=0.01)


def test_letters_that_arrive_together_are_read_once(page: Browser) -> None:
    page.ask("(runs = 0, Run = class extends Run { constructor(...given) { super(...given); runs++; } }, 0)")
    before = page.ask("location.hash")
    page.ask(
        "(() => { const c = document.querySelector('#lab-text'); for (let i = 1; i <= 40; i++) { "
        "c.value = 'a'.repeat(i); c.dispatchEvent(new Event('input', {bubbles: true})); } })()"
    )
    page.until(f"location.hash !== {json.dumps(before)}")
    assert "text=" + 40 * "a" in page.ask("location.hash")
    assert page.ask("runs") <= 2


def test_the_tour_goes_from_zero_to_two_layers_and_cuts_the_key_edge(page: Browser) -> None:
    page.ask("document.querySelector('#lab-tour').open = true")
    seen, ringed = [], []
    for at in range(1, 11):
        page.until(f"document.querySelector('#lab-step').textContent.startsWith('{at} of 10.')")
        page.until("document.querySelector('#lab .ringed')")
        ringed.append(page.ask("document.querySelector('#lab .ringed').id"))
        top = page.ask("document.querySelector('.ringed').getBoundingClientRect().top")
        pinned = page.ask("document.querySelector('#lab-tour').getBoundingClientRect().bottom")
        assert top >= pinned - 1
        assert top < page.ask("innerHeight") - 50
        seen.append((page.ask("document.querySelector('#lab-model').value"), page.text("#lab-changes")))
        assert page.ask("document.querySelector('#lab-back').disabled") is (at == 1)
        page.click("#lab-next")  # disabled at the last step
    assert [model for model, _ in seen] == ["L0S0", "L0S0", "L1H2S0", "L1H2S0", *["L2H2S0"] * 6]
    assert [at for at, (_, changes) in enumerate(seen) if "keys cut" in changes] == [9]
    assert {"lab-flow", "lab-heads", "lab-tokens", "lab-matrix", "lab-score"} <= set(ringed)
    page.ask("document.querySelector('#lab-tour').open = false")
    page.until("!document.querySelector('#lab .ringed')")


RIBBONS = "[...document.querySelectorAll('#lab-flow path[role]')]"


def ribbons(page: Browser) -> list[tuple[float, str, float]]:
    """The width, the words and the value of each ribbon."""
    found = page.ask(f"{RIBBONS}.map((p) => [p.getAttribute('stroke-width'), p.ariaLabel])")
    return [(float(width), said, float(said.split(": ")[-1].replace("−", "-"))) for width, said in found]


@pytest.fixture
def last(page: Browser) -> Browser:
    """The last token of a text with repeats."""
    choose(page, "#lab-text", "for i in range(n): print(i) for i in range")
    return page


def test_ribbons_are_as_wide_as_their_parts_which_add_up_to_the_logit(last: Browser) -> None:
    found = ribbons(last)
    assert 12 < len(found) <= 14
    total = numbers(last, "#lab-paths .total")[0]
    assert sum(value for *_, value in found) == pytest.approx(total, abs=0.005 * len(found))
    scale = max(width for width, *_ in found) / max(abs(value) for *_, value in found)
    assert all(width == pytest.approx(max(1, scale * abs(value)), abs=0.011 * scale) for width, _, value in found)
    kinds = last.ask(f"{RIBBONS}.map((p) => p.classList[0])")
    assert kinds == ["less" if value < 0 else "more" for *_, value in found]


def test_a_ribbon_opens_into_its_arithmetic(last: Browser) -> None:
    at, said = next((i, words) for i, (_, words, _) in enumerate(ribbons(last)) if words.count("→") == 3)
    last.ask(f"{RIBBONS}[{at}].focus()")
    last.press("Enter")
    assert last.text("#lab-arithmetic h3") == said
    rows = last.ask(
        "[...document.querySelectorAll('#lab-arithmetic tr')].slice(1)"
        ".map((row) => [...row.cells].map((cell) => cell.textContent.replace('−', '-')))"
    )
    for row in (row for row in rows if row[1]):
        attention, scale, entry, part = (float(row[i]) for i in (1, 3, 5, 7))
        rounding = 0.0006 * (1 + abs(scale * entry) + abs(attention * entry) + abs(attention * scale))
        assert attention * scale * entry == pytest.approx(part, abs=rounding)
    *parts, total = (float(row[7]) for row in rows)
    assert sum(parts) == pytest.approx(total, abs=0.0006 * len(rows))
    last.ask(f"{RIBBONS}.at(-1).onclick()")
    assert "smaller parts" in last.text("#lab-arithmetic h3")


def test_a_slider_leads_through_checkpoints_on_the_same_text(page: Browser) -> None:
    text = page.ask("document.querySelector('#lab-text').value")
    losses = {}
    for stage, name in enumerate((EARLIER, "L2H2S0")):
        page.choose("#lab-stage", str(stage))
        page.until(f"document.querySelector('#lab-link').href.includes({json.dumps(quote_plus(name) + '&')})")
        losses[name] = page.text("#lab-summary")
    assert page.ask("document.querySelector('#lab-text').value") == text
    assert losses[EARLIER] != losses["L2H2S0"]
    assert page.ask("document.querySelector('#lab-training').hidden") is False
    choose(page, "#lab-model", "L1H2S0")
    assert page.ask("document.querySelector('#lab-training').hidden") is True


def test_what_is_shown_is_kept_beside_another_state(page: Browser) -> None:
    choose(page, "#lab-mode", "zero")
    total = "#lab-paths tr:has(.total) td"
    kept = page.text(f"{total}:nth-child(3)")
    click(page, "#lab-keep")
    assert page.ask(f"document.querySelectorAll('{total}').length") == 3
    choose(page, "#lab-model", EARLIER)
    assert page.texts("#lab-paths th")[-1].endswith("1.0 writes zero")
    assert page.text(f"{total}:last-child") == kept != page.text(f"{total}:nth-child(3)")
    assert page.ask("document.querySelector('#lab-beside').hidden") is False
    address, shown = page.ask("location.hash"), page.text("#lab-paths")
    go(page, "model=L1H2S0&random=3")
    page.ask(f"location.hash = {json.dumps(address)}")
    page.until(f"document.querySelector('#lab-paths').textContent === {json.dumps(shown)}")
    choose(page, "#lab-model", OTHER)  # of another text
    assert page.text("#lab-keep") == "Keep, to compare with"
    page.ask(f"location.hash = {json.dumps(address)}")
    page.until(f"document.querySelector('#lab-paths').textContent === {json.dumps(shown)}")
    click(page, "#lab-keep")
    assert page.texts("#lab-paths th")[-1] == "intact model"


def test_the_flow_and_the_matrix_are_saved_as_pictures(page: Browser, tmp_path: Path) -> None:
    page.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.click("#lab-save-flow")
    page.click("#lab-save-matrix")
    flow, matrix = tmp_path / "flow.svg", tmp_path / "head 1.0.png"
    end = time.monotonic() + 20
    while not (flow.is_file() and matrix.is_file()) and time.monotonic() < end:
        time.sleep(0.05)
    assert ElementTree.fromstring(flow.read_text(encoding="utf-8")).tag.endswith("svg")
    assert "stroke: rgb(" in flow.read_text(encoding="utf-8")
    assert matrix.read_bytes().startswith(b"\x89PNG")


def test_closing_the_tour_brings_the_readers_changes_back_unless_a_step_was_changed(page: Browser) -> None:
    page.ask("document.querySelector('#lab-tour').open = false")  # other tests leave it open
    go(page, "model=L2H2S0&text=x&head=L1H0")
    choose(page, "#lab-mode", "zero")
    mine = page.ask("location.hash")
    click(page, "#lab-tour summary")
    page.until("!location.hash.includes('off=L1H0.zero')")
    click(page, "#lab-tour summary")
    assert page.ask("location.hash") == mine
    page.until("document.querySelector('#lab-changes').textContent.includes('1.0 writes zero')")
    click(page, "#lab-tour summary")
    click(page, "#lab-random")
    changed = page.ask("location.hash")
    page.ask("document.querySelector('#lab-tour summary').click()")
    page.until("!document.querySelector('#lab-tour').open")
    page.ask("new Promise((done) => setTimeout(done, 100))")  # the event follows the click
    assert page.ask("location.hash") == changed


def test_tokens_and_pairs_are_reached_by_keys(page: Browser) -> None:
    page.ask(f"document.querySelectorAll('{TOKENS}')[2].focus()")
    page.press("ArrowRight")
    assert "(3) attends, by head 1.0, to" in page.text("#lab-said")
    page.press("Enter")
    page.until("location.hash.includes('token=3')")
    page.ask("document.querySelector('#lab-matrix').focus()")
    page.press("Home")
    page.press("ArrowDown")
    page.until("location.hash.includes('token=4')")
    page.press("ArrowLeft")
    page.until("location.hash.includes('key=')")
    assert page.text("#lab-score h3").startswith("Why head 1.0 looks here: query ")


def test_the_address_restores_everything(page: Browser) -> None:
    choose(page, "#lab-text", "if x:\n\treturn 'é' % &#+")
    choose(page, "#lab-mode", "previous")
    click(page, "#lab .thumb")
    click(page, "[data-edge='L0H0-L1H1-Q']")
    click(page, f"{TOKENS}:nth-child(3)")
    click(page, "#lab-predictions tr:nth-child(5) button")
    address, shown = page.ask("location.hash"), page.ask("document.querySelector('#lab').innerText")
    go(page, "model=L1H2S0&random=3")
    assert page.ask("document.querySelector('#lab').innerText") != shown
    page.ask(f"location.hash = {json.dumps(address)}")
    page.until("document.querySelector('#lab-model').value === 'L2H2S0'")
    assert page.ask("document.querySelector('#lab').innerText") == shown
    go(page, "model=none&head=L9H9&token=99999&key=88&target=777777&off=L7H7.zero+L0H0-L9H9-K+x&passage=44")
    assert page.texts(TOKENS) == ["<|bos|>"]
