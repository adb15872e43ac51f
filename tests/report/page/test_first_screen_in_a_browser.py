"""The sentence of the first screen: one click cuts the key edges, and what it says is what torch computes."""

import itertools
import re
from collections import defaultdict

import pytest
import torch

from pathsum.interventions.run import Run
from tests.report.page import small
from tests.report.page.browser import Browser

SENTENCE = "def area(width): return width * area(width)"


def said(page: Browser) -> list[float]:
    return [float(x.replace("−", "-")) for x in re.findall(r"−?\d+\.\d\d", page.text("#live-said"))]


def means(model: torch.nn.Module, tokens: torch.Tensor, edges: list[str]) -> list[float]:
    """Return the mean loss of tokens that repeat a pair, and of the others, without ``edges``."""
    run, readers = Run(model, tokens), defaultdict(set)  # type: ignore[arg-type, var-annotated]
    for edge in edges:
        early, late = ((int(layer), int(h)) for layer, h in re.findall(r"L(\d+)H(\d+)", edge))
        readers[late].add(early)
    for late, heads in readers.items():
        run = run.patch_edges(late, {("K", head): torch.zeros_like(run.streams[0]) for head in heads})
    losses, pairs = run.losses()[0], list(itertools.pairwise(tokens[0].tolist()))
    again = torch.tensor([i > 0 and pairs[i] in pairs[1:i] for i in range(len(pairs))])
    return [losses[again].mean().item(), losses[~again].mean().item()]


def test_one_click_cuts_the_key_edges_of_the_text_that_is_there(opened: Browser) -> None:
    opened.until("document.querySelector('#live-said').textContent")
    opened.choose("#live-text", SENTENCE)
    opened.until("document.querySelector('#live-tokens').textContent.includes('area')")
    edges = opened.ask("labModels.get('L2H2S0')().then((m) => keyEdges(m).join(' '))").split()
    assert edges
    model = small.random_model(2, n_layers=2, n_heads=2)
    tokens = torch.tensor([[0, *small.tokenizer().encode(SENTENCE).ids][: small.N_CTX]])
    before, after = means(model, tokens, []), means(model, tokens, edges)
    assert said(opened) == pytest.approx(before, abs=0.006)
    opened.click("#live-cut")
    opened.until("document.querySelector('#live-cut').textContent === 'Undo'")
    assert opened.ask("document.querySelector('#live-text').value") == SENTENCE
    assert said(opened) == pytest.approx([before[0], after[0], before[1], after[1]], abs=0.006)
    assert abs(after[0] - before[0]) > 0.02
    assert "off=" in opened.ask("document.querySelector('#live-lab').href")
    opened.click("#live-cut")
    opened.until("document.querySelector('#live-cut').textContent !== 'Undo'")
    assert said(opened) == pytest.approx(before, abs=0.006)
    opened.choose("#live-text", "")
    opened.until("!document.querySelector('#live-tokens').textContent")
    assert "NaN" not in opened.text("#live-said")
