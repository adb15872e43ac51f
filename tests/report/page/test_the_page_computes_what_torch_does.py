"""The lab's JavaScript against this project's Python: tokens, logits, interventions and path expansions."""

import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor

from pathsum.circuits.paths import all_paths, path_logits, path_name
from pathsum.circuits.score_paths import stream_paths
from pathsum.core.weights import Weights
from pathsum.interventions.run import Place, Run
from pathsum.model.opened import Rotation
from pathsum.model.transformer import Transformer
from pathsum.report.page.lab import mean_values, packed_model, packed_tokenizer
from pathsum.report.page.render import TEMPLATES, WIDGETS, packed
from tests.report.page import small
from tests.report.page.browser import CHROMIUM, Browser

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no chromium on this machine")

MODELS = {
    "zero layers": small.random_model(1, n_layers=0),
    "one layer": small.random_model(2, n_layers=1),
    "two layers": small.random_model(3),
    "three layers": small.random_model(4, n_layers=3, n_heads=2, norm="none", positions="none"),
    "sinusoidal": small.random_model(5, positions="sinusoidal", norm="layer"),
    "rotary": small.random_model(6, positions="rotary", d_head=6),
    "biases": small.opened_model(7, Rotation(*small.turns(4), adjacent=True)),
    "biases, three layers": small.opened_model(8, None, n_layers=3, n_heads=2),
}
WINDOWS = small.windows(small.documents()[:20])  # of the means, too
TOKENS = WINDOWS[:, :-1]
# The page rounds every product to float32 once (2⁻²⁴), the reference is in float64: scores of up to 100 nats carry the
# rounding into patterns at 100 · 2⁻²⁴ ≈ 6e-6 of what heads write
TOLERANCE = 3e-5  # of the largest logit


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A page of the lab's scripts without its controls, with every model and the tokenizer."""
    folder = tmp_path_factory.mktemp("lab")
    data = {name: packed_model(name, model, TOKENS) for name, model in MODELS.items()}
    scripts = [(TEMPLATES / name).read_text(encoding="utf-8") for name in ("pieces.js", *WIDGETS["lab"][:-1])]
    scripts.append(f"const data = {json.dumps(data, default=packed)}, models = {{}};")
    scripts.append(f"const tokenizer = new Tokenizer({json.dumps(packed_tokenizer(small.tokenizer()))});")
    text = "".join(f"<script>{s}</script>" for s in scripts)
    (folder / "index.html").write_text(f'<!doctype html><meta charset="utf-8">{text}', encoding="utf-8")
    with Browser(folder / "profile") as browser:
        browser.open(folder / "index.html")
        browser.ask(
            "(async () => { for (const [name, about] of Object.entries(data)) "
            "models[name] = await readModel(about); })()"
        )
        yield browser
        assert browser.complaints == []


def logits(page: Browser, name: str, tokens: Tensor, off: Sequence[str] = ()) -> Tensor:
    """The page's logits of a model on some windows."""
    asked = f"{json.dumps(tokens.tolist())}.map((t) => Array.from(new Run(models[{json.dumps(name)}], t, "
    found = page.ask(f"{asked}{json.dumps(off)}).logits))")
    return torch.tensor(found, dtype=torch.float64).view(*tokens.shape, -1)


def exact(name: str) -> Transformer:
    """The model as it is on the page, in float64."""
    return deepcopy(MODELS[name]).double()


def close(found: Tensor, wanted: Tensor) -> bool:
    return bool((found - wanted).abs().max() <= TOLERANCE * wanted.abs().max())


def test_the_tokenizer_gives_the_tokens_of_the_python_one(page: Browser) -> None:
    texts = (*small.documents(), *small.HOSTILE)
    found = page.ask(f"{json.dumps(texts)}.map((text) => tokenizer.encode(text))")
    assert found == [small.tokenizer().encode(text).ids for text in texts]


@pytest.mark.parametrize("name", MODELS)
def test_logits_of_twenty_texts_are_those_of_torch(page: Browser, name: str) -> None:
    found, wanted = logits(page, name, TOKENS), exact(name)(TOKENS)
    assert close(found, wanted)
    assert not close(found, wanted.flip(0))


def test_losses_are_those_of_torch(page: Browser) -> None:
    found = page.ask(f"new Run(models['two layers'], {TOKENS[0].tolist()}).losses")
    assert torch.tensor(found).sub(Run(exact("two layers"), TOKENS[:1]).losses()[0]).abs().max() < 1e-4


def by_torch(name: str, off: Sequence[str]) -> Run:
    """The interventions, which the page names, by ``Run``."""
    run = Run(exact(name), TOKENS[:3])
    previous = torch.diag(torch.ones(TOKENS.shape[1] - 1, dtype=torch.float64), -1)
    previous[0, 0] = 1
    for change in off:
        head, _, mode = change.partition(".")
        match mode:
            case "zero":
                run = run.zero(place(head))
            case "mean":
                layer, number = at = place(head)
                mean = mean_values(MODELS[name], TOKENS)[layer][number].half().double()
                write = mean @ run.model.attention(layer).W_O[number].mT
                run = run.patch_heads({at: write.expand_as(run.output(at))})
            case "previous":
                run = run.force_pattern(place(head), previous)
    edges = [change.split("-") for change in off if "-" in change]
    for late in {late for _, late, _ in edges}:
        cut = {(side, place(early)) for early, other, side in edges if other == late}
        run = run.patch_edges(place(late), {edge: torch.zeros_like(run.output((0, 0))) for edge in cut})
    return run


def place(head: str) -> Place:
    layer, number = head[1:].split("H")
    return int(layer), int(number)


CHANGES = [
    ["L0H1.zero"],
    ["L1H2.zero", "L0H0.zero"],
    ["L0H2.mean"],
    ["L1H0.mean", "L0H1.mean"],
    ["L0H1.previous"],
    ["L1H1.previous"],
    *([f"L0H1-L1H0-{side}"] for side in "QKV"),
    ["L0H1-L1H0-K", "L0H2-L1H0-K", "L0H1-L1H0-Q", "L0H0-L1H0-V", "L0H0-L1H2-V"],
]


@pytest.mark.parametrize("name", ["two layers", "sinusoidal", "rotary", "biases"])
@pytest.mark.parametrize("off", CHANGES, ids=" ".join)
def test_interventions_are_those_of_a_run(page: Browser, off: list[str], name: str) -> None:
    wanted = by_torch(name, off).logits()
    intact = Run(exact(name), TOKENS[:3]).logits()
    assert close(logits(page, name, TOKENS[:3], off), wanted)
    assert not close(intact, wanted)


@pytest.mark.parametrize("name", MODELS)
def test_a_logit_is_split_into_the_paths_of_the_path_expansion(page: Browser, name: str) -> None:
    model, position, token = exact(name), 17, 5
    weights, trace = model.weights(), model.trace(TOKENS[:1])
    centred = Weights(weights.W_E, weights.W_U - weights.W_U.mean(0), weights.layers)
    wanted = {
        path_name(p): path_logits(centred, p, TOKENS[:1], trace.patterns, trace.scales)[0, position, token].item()
        for p in all_paths(weights)
    }
    run = f"new Run(models[{json.dumps(name)}], {TOKENS[0].tolist()})"
    parts = page.ask(f"logitPaths({run}, {position}, {token})")
    found = {"→".join(part["path"]) or "direct": part["value"] for part in parts}
    further = {"positions", "bias of layer", "value bias", "bias of logits"}
    assert wanted.keys() == {p for p in found if not any(p.startswith(start) for start in further)}
    assert (found.keys() == wanted.keys()) != name.startswith("biases")
    size = trace.logits.abs().max().item()
    assert all(abs(found[p] - wanted[p]) < TOLERANCE * size for p in wanted)


ALL = ["L0H1.mean", "L0H2.previous", "L1H2.zero", "L0H0-L1H0-V", "L0H1-L1H1-V", "L0H0-L1H0-Q", "L0H1-L1H0-K"]


@pytest.mark.parametrize(
    "name", ["two layers", "three layers", "sinusoidal", "rotary", "biases", "biases, three layers"]
)
def test_paths_and_pairs_of_paths_add_up_under_interventions(page: Browser, name: str) -> None:
    """To the logit over the mean of all logits, and to the score of a query and a key."""
    script = """(() => { const run = new Run(models[%s], %s, %s), i = 19, t = 7, {d_vocab} = run.model;
        const row = run.logits.subarray(i * d_vocab, (i + 1) * d_vocab);
        const {q, k, bias} = run.heads.L1H0, n = run.model.d_head;
        const split = scorePaths(run, "L1H0", 19, 4);
        return [sumOf(logitPaths(run, i, t).map((p) => p.value)) - (row[t] - sumOf([...row]) / d_vocab),
            sumOf(split.values.flat()) + split.position
            - (dot(q.subarray(19 * n, 20 * n), k.subarray(4 * n, 5 * n)) / Math.sqrt(n) + bias[15]),
            Math.max(...row.map(Math.abs)), Math.max(1, ...split.values.flat().map(Math.abs))]; })()"""
    for off in [*CHANGES, ALL]:
        if "three" not in name or not any("H2" in change for change in off):  # the other has two heads a layer
            logit, score, size, largest = page.ask(script % tuple(map(json.dumps, (name, TOKENS[0].tolist(), off))))
            assert abs(logit) < TOLERANCE * size, off
            assert abs(score) < TOLERANCE * largest, (off, score, largest)


@pytest.mark.parametrize("name", ["one layer", "two layers", "three layers"])
def test_a_score_is_split_into_pairs_of_paths(page: Browser, name: str) -> None:
    model, query, key = exact(name), 23, 11
    layer, weights, trace = len(model.layers) - 1, model.weights(), model.trace(TOKENS[:1])
    paths = [p for p in all_paths(weights) if all(at < layer for at, _ in p)]
    read = stream_paths(weights, layer, paths, TOKENS[:1], trace.patterns, trace.scales)[:, 0]
    head = weights.layers[layer][1]
    wanted = read[:, query] @ head.W_QK.left @ head.W_QK.right @ read[:, key].mT
    run = f"new Run(models[{json.dumps(name)}], {TOKENS[0].tolist()})"
    found: dict[str, Any] = page.ask(f"scorePaths({run}, 'L{layer}H1', {query}, {key})")
    names = [path_name(p) for p in paths]
    order = [names.index("→".join(p) or "direct") for p in found["queries"]]
    assert sorted(order) == list(range(len(paths)))
    assert found["keys"] == found["queries"]
    values = torch.tensor(found["values"], dtype=torch.float64)
    assert (values - wanted[order][:, order]).abs().max() < TOLERANCE * max(1, wanted.abs().max().item())
    assert found["position"] == pytest.approx(model.attention(layer).position_bias(29)[1, query - key].item(), abs=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_a_strand_is_the_part_of_a_path_that_begins_at_one_token(page: Browser, name: str) -> None:
    """The reference gives every position an embedding of its own, keeps one of them, and has the one output."""
    model, position, token, n = exact(name), 17, 5, TOKENS.shape[1]
    weights, trace = model.weights(), model.trace(TOKENS[:1])
    run = f"new Run(models[{json.dumps(name)}], {TOKENS[0].tolist()})"
    strands = page.ask(f"logitStrands({run}, {position}, {token})")
    found = {("→".join(s["path"]) or "direct", s["source"]): s["value"] for s in strands}
    size = trace.logits.abs().max().item()
    output = (weights.W_U[token] - weights.W_U.mean(0)).expand(n, -1)
    for source in (0, 3, 17):
        W_E = weights.W_E[:, TOKENS[0]] * (torch.arange(n) == source)
        alone = Weights(W_E, output, weights.layers)
        for p in all_paths(weights):
            wanted = path_logits(alone, p, torch.arange(n)[None], trace.patterns, trace.scales)[0, position, 0]
            assert found.get((path_name(p), source), 0) == pytest.approx(wanted.item(), abs=TOLERANCE * size)
    assert max(source for _, source in found if source is not None) <= position


@pytest.mark.parametrize(
    "name", ["two layers", "three layers", "sinusoidal", "rotary", "biases", "biases, three layers"]
)
def test_strands_add_up_to_their_paths_and_routes_to_their_strands_under_interventions(
    page: Browser, name: str
) -> None:
    script = """(() => { const run = new Run(models[%s], %s, %s), of = ({path}) => path.join("→");
        const strands = logitStrands(run, 19, 7), largest = (values) => Math.max(0, ...values.map(Math.abs));
        const routes = strands.filter((s) => s.source !== null).map((s) =>
            s.value - sumOf(strandRoutes(run, 19, s).map((r) => r.attention * r.scale * s.entry)));
        const paths = logitPaths(run, 19, 7).map((p) =>
            p.value - sumOf([0, ...strands.filter((s) => of(s) === of(p)).map((s) => s.value)]));
        return [largest(paths), largest(routes), largest([...run.logits])]; })()"""
    for off in [*CHANGES, ALL]:
        if "three" not in name or not any("H2" in change for change in off):
            paths, routes, size = page.ask(script % tuple(map(json.dumps, (name, TOKENS[0].tolist(), off))))
            assert max(paths, routes) < TOLERANCE * size, off


def test_random_tokens_come_twice_and_seeds_differ(page: Browser) -> None:
    first, same, other = page.ask("[7, 7, 8].map((seed) => tokenizer.randomTwice(seed, 11))")
    assert first == same != other
    assert first[0] == 0
    assert first[1:12] == first[12:]
    assert min(first[1:]) > 256  # merged tokens alone
