"""The lab as a reader has it: text, interventions and choices change what is shown, and the address holds them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report import synthetic
from tests.report.page import small
from tests.report.page.browser import CHROMIUM, WITH_HANDLERS, Browser

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no chromium on this machine")

TOKENS = "#lab-tokens button"


@pytest.fixture(scope="module")
def opened(full: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("lab"), 390) as browser:
        browser.open_report(full)
        yield browser
        assert browser.complaints == []
        assert {r.split("#")[0] for r in browser.requests if not r.startswith("data:")} == {
            (full / "index.html").as_uri()
        }


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


def text(page: Browser, selector: str) -> str:
    return str(page.ask(f"document.querySelector({json.dumps(selector)}).textContent"))


def texts(page: Browser, selector: str) -> list[str]:
    found: list[str] = page.ask(
        f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.firstChild?.textContent)"
    )
    return found


def click(page: Browser, selector: str) -> None:
    before = page.ask("location.hash")
    page.ask(f"document.querySelector({json.dumps(selector)}).click()")
    page.until(f"location.hash !== {json.dumps(before)}")


def choose(page: Browser, control: str, value: str) -> None:
    before = page.ask("location.hash")
    page.ask(
        f"(() => {{ const c = document.querySelector({json.dumps(control)}); c.value = {json.dumps(value)}; "
        "for (const kind of ['input', 'change']) c.dispatchEvent(new Event(kind, {bubbles: true})); })()"
    )
    page.until(f"location.hash !== {json.dumps(before)}")


def test_a_text_is_read_as_the_tokenizer_does(page: Browser) -> None:
    for written in ("class A: pass", small.HOSTILE[9], *(synthetic.HOSTILE[i] for i in (1, 8, 9))):
        choose(page, "#lab-text", written)
        assert len(texts(page, TOKENS)) == min(small.N_CTX, 1 + len(small.tokenizer().encode(written).ids))
    assert texts(page, TOKENS)[:2] != ["<|bos|>", "<|bos|>"]
    assert page.ask("document.querySelectorAll('.lab img, .lab script').length") == 0
    assert page.ask(WITH_HANDLERS) == 0
    choose(page, "#lab-text", "")
    assert texts(page, TOKENS) == ["<|bos|>"]
    assert text(page, "#lab-summary").startswith("No text")
    choose(page, "#lab-text", small.HOSTILE[6])
    assert len(texts(page, TOKENS)) == small.N_CTX
    assert f"Only the first {small.N_CTX - 1} tokens are read" in text(page, "#lab-summary")


def test_every_model_and_passage_can_be_chosen(page: Browser) -> None:
    for model, heads in (("L0S0", 0), ("L1H2S0", 2), ("L2H2S0", 4)):
        choose(page, "#lab-model", model)
        shown = page.ask("getComputedStyle(document.querySelector('#lab-attention')).display")
        assert (shown == "none") is (heads == 0)
        if heads:
            assert len(texts(page, "#lab .thumb")) == heads
    for passage in ("0", "3", "random"):
        choose(page, "#lab-passage", passage)
        assert len(texts(page, TOKENS)) > 20


def test_what_is_switched_off_changes_losses_and_is_undone(page: Browser) -> None:
    intact = text(page, "#lab-summary")
    assert "intact" not in intact
    choose(page, "#lab-mode", "zero")
    assert "intact model" in text(page, "#lab-summary")
    assert page.ask("document.querySelectorAll('#lab-tokens small.more, #lab-tokens small.fewer').length") > 0
    click(page, "[data-edge='L0H1-L1H0-K']")
    assert [t.split(" ")[0] for t in texts(page, "#lab-changes button")] == ["1.0", "0.1→1.0"]
    click(page, "#lab-changes button")
    assert texts(page, "#lab-changes button") == ["0.1→1.0 keys cut ✕"]
    click(page, "#lab-undo")
    assert text(page, "#lab-summary") == intact


def test_a_prediction_is_split_into_paths_that_add_up_as_shown(page: Browser) -> None:
    for changes in ("", "&off=L0H1.mean+L0H0-L1H0-V"):
        go(page, "model=L2H2S0&text=def+f(x):&head=L1H1&token=3" + changes)
        click(page, "#lab-predictions tr:nth-child(4) button")
        assert [sum(thousandths(page, "#lab-paths .part"))] == thousandths(page, "#lab-paths .total")
        said = text(page, "#lab-score p").replace("−", "-")
        score, distance = (round(1000 * float(x)) for x in re.findall(r"-?\d+\.\d{3}", said))
        assert sum(thousandths(page, "#lab-score .pair")) + distance == score


def test_paths_that_an_intervention_removes_stay_with_what_they_added(page: Browser) -> None:
    go(page, "model=L2H2S0&text=def+f(x):&head=L1H1&token=3")
    whole = thousandths(page, "#lab-paths .total")
    assert len(thousandths(page, "#lab-paths .part")) == 9
    choose(page, "#lab-mode", "zero")
    parts, before = (thousandths(page, f"#lab-paths .{kind}") for kind in ("part", "before"))
    assert len(parts) == len(before) == 9
    assert [sum(before)] == whole
    assert sum(b != 0 and now == 0 for b, now in zip(before, parts, strict=True)) >= 3  # all paths through the head


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


def thousandths(page: Browser, selector: str) -> list[int]:
    return [round(1000 * float(x.replace("−", "-"))) for x in texts(page, selector)]


def test_the_presets_show_induction_and_cut_its_key_edge(page: Browser) -> None:
    click(page, "#lab-show")
    assert "the first copy" in text(page, "#lab-summary")
    assert "intact" not in text(page, "#lab-summary")
    click(page, "#lab-cut")
    assert "keys cut" in text(page, "#lab-changes")
    assert "intact" in text(page, "#lab-summary")


def test_the_tour_goes_from_zero_to_two_layers_and_cuts_the_key_edge(page: Browser) -> None:
    assert page.ask("document.querySelector('#lab-next').disabled")  # until the models are read
    page.ask("document.querySelector('#lab-tour').open = true")
    page.until("document.querySelector('#lab-step').textContent.startsWith('1 of 7.')")
    assert page.ask("document.querySelector('#lab-back').disabled")
    seen = []
    for at in range(1, 8):
        page.until(f"document.querySelector('#lab-step').textContent.startsWith('{at} of 7.')")
        seen.append((page.ask("document.querySelector('#lab-model').value"), text(page, "#lab-changes")))
        page.ask("document.querySelector('#lab-next').click()")  # disabled at the last step
    assert [model for model, _ in seen] == ["L0S0", "L1H2S0", *["L2H2S0"] * 5]
    assert [at for at, (_, changes) in enumerate(seen) if "keys cut" in changes] == [4]
    assert "frobnicate" in page.ask("document.querySelector('#lab-text').value")
    for _ in range(2):
        click(page, "#lab-back")
    assert text(page, "#lab-step").startswith("5 of 7. Test")
    assert "keys cut" in text(page, "#lab-changes")


def test_closing_the_tour_brings_the_readers_changes_back_unless_a_step_was_changed(page: Browser) -> None:
    page.ask("document.querySelector('#lab-tour').open = false")  # other tests leave it open
    go(page, "model=L2H2S0&text=x&head=L1H0")
    choose(page, "#lab-mode", "zero")
    mine = page.ask("location.hash")
    click(page, "#lab-tour summary")
    page.until("!location.hash.includes('off=L1H0.zero')")
    assert not page.ask("document.querySelector('#lab-changes').textContent.includes('1.0 writes zero')")
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


def test_a_screen_reader_hears_the_step_before_what_it_changes(page: Browser) -> None:
    page.ask("document.querySelector('#lab-tour').open = true")
    page.until("!document.querySelector('#lab-next').disabled")
    page.ask("""window.changed = []; new MutationObserver((all) => changed.push(...all.map(({target}) => target.id)))
        .observe(document.querySelector('#lab'), {childList: true, subtree: true})""")
    click(page, "#lab-next")
    changed = page.ask("changed")
    assert changed.index("lab-step") < changed.index("lab-summary")


@pytest.mark.parametrize(
    ("models", "titles"),
    [
        ("{name: 'A'}, {name: 'B', previous: 'L0H1', induction: null}, undefined", ["Zero", "One", "Your"]),
        ("undefined, undefined, {name: 'C', previous: 'L0H1', induction: null}", ["Your"]),
        ("undefined, undefined, undefined", ["Your"]),
        (
            "undefined, {name: 'B'}, {name: 'C', previous: 'L0H1', induction: 'L1H0'}",
            ["One", "Two", "Two", "Test", "Paths.", "Your"],
        ),
    ],
)
def test_the_tour_leaves_out_steps_whose_model_or_induction_head_is_absent(
    page: Browser, models: str, titles: list[str]
) -> None:
    said = page.ask(f"tourSteps([{models}], {{}}, () => ({{}})).map(([, text]) => text)")
    assert [words.split()[0] for words in said] == titles


def test_tokens_and_pairs_are_reached_by_keys(page: Browser) -> None:
    page.ask(f"document.querySelectorAll('{TOKENS}')[2].focus()")
    page.press("ArrowRight")
    assert "(3) attends, by head 1.0, to" in text(page, "#lab-said")
    page.press("Enter")
    page.until("location.hash.includes('token=3')")
    page.ask("document.querySelector('#lab-matrix').focus()")
    page.press("Home")
    page.press("ArrowDown")
    page.until("location.hash.includes('token=4')")
    page.press("ArrowLeft")
    page.until("location.hash.includes('key=')")
    assert text(page, "#lab-score h3").startswith("Score of head 1.0: query ")


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
    assert texts(page, TOKENS) == ["<|bos|>"]


def test_it_fits_a_phone(page: Browser) -> None:
    assert page.ask("document.documentElement.scrollWidth <= innerWidth") is True
