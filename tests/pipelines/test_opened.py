"""`make report WEIGHTS=…`: the whole page for models from files. Mistakes are reported before anything is written."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
import yaml
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

from pathsum.circuits.folding import centre, fold_gains
from pathsum.core.weights import Head, Weights
from pathsum.extraction.cell import extract
from pathsum.model.checkpoint import save_checkpoint
from pathsum.model.transformer import Transformer
from pathsum.records.registry import tables
from pathsum.records.results import Cell
from pathsum.report.page.lab import packed_model
from pathsum.text.bos import BOS_TEXT
from pathsum.text.tokenizer import tokenizer_hash
from pipelines import opened
from pipelines.opened import arguments, fits_page, reported
from pipelines.paths import ROOT
from tests.imported.models import N_CTX, POSITIONS, written
from tests.report.page import small
from tests.training.small import MODEL

NAMES = [*(f"w{i}" for i in range(20)), "<unk>", "<|endoftext|>"]  # of 23 ids; BOS is the last that the tokenizer has
CURVE = {"previous_token_first", "phase_change_two_layer", "phase_change_coincides", "smeared_keys_earlier"}


def save(folder: Path, seed: int, name: str = "model", n_layers: int = 2, n_ctx: int = N_CTX) -> None:
    folder.mkdir(exist_ok=True)
    state, config = written(seed, n_layers, normalization_type="LN", **POSITIONS[1])
    state["pos_embed.W_pos"], config["n_ctx"] = state["pos_embed.W_pos"][:n_ctx], n_ctx
    save_file({n: t.float().contiguous() for n, t in state.items()}, folder / f"{name}.safetensors")
    (folder / f"{name}.json").write_text(json.dumps(config))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with weights in TransformerLens's names, a tokenizer whose BOS has the last id, and a text."""
    save(tmp_path / "mine", 1)
    tokenizer = Tokenizer(WordLevel({name: i for i, name in enumerate(NAMES)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.save(str(tmp_path / "mine" / "tokenizer.json"))
    g = torch.Generator().manual_seed(0)
    for i in range(300):
        drawn = torch.randint(20, (20,), generator=g).tolist()
        (tmp_path / f"{i:03}.txt").write_text(" ".join(f"w{n}" for n in [*drawn, *drawn]))
    values = yaml.safe_load((ROOT / "params.yaml").read_text())
    values["extract"] |= {"rotations": 49, "held_out_windows": 60, "windows": 30, "repeated_windows": 8}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(values))
    (tmp_path / "conf").mkdir()
    shutil.copy(ROOT / "conf" / "claims.yaml", tmp_path / "conf")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # the variable is read at import alone
    return tmp_path


def run(**given: str) -> Path:
    """Write a report without figures, whose drawing takes most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opened, "draw_all", lambda _: {})
        return whole(**given)


def whole(**given: str) -> Path:
    return reported(arguments([f"--{name}={value}" for name, value in {"text": "*.txt", **given}.items()]))


def test_weights_of_another_library_get_the_whole_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = whole(weights="mine")
    assert made == Path("reports/mine")
    said = capsys.readouterr().err
    assert "TEXT: 300 documents" in said
    assert f"windows have {N_CTX} tokens, the most that every model takes" in said
    page = (made / "index.html").read_text()
    assert "mine, taken apart" in page
    assert "Trained here" not in page
    assert "Check first: the held-out loss of mine is" in page  # random weights predict worse than frequencies
    assert "phase change within" not in page  # there is no training curve
    assert "far from the training text" not in page
    cells = pd.read_csv(made / "tables" / "cells.csv").iloc[0]
    assert cells.exactness < 1e-10
    assert {p.stem for p in (made / "tables").glob("*.csv")} >= {n for n in tables() if n not in ("log", "summary")} & {
        "heads", "ablations", "terms", "composition", "eigenvalues", "labels", "lens", "skip_trigrams",
    }  # fmt: skip
    claims = pd.read_csv(made / "tables" / "claims.csv").set_index("id").verdict
    assert (claims[[*CURVE]] == "not testable here").all()
    assert claims["path_expansion_exact"] == "reproduced"
    assert claims["two_layer_induction"] == "not"  # random weights
    run(weights="mine")
    assert "the report in reports/mine will be replaced" in capsys.readouterr().err


@pytest.mark.parametrize("n_layers", [0, 1])
def test_shallow_models_get_a_page_as_well(folder: Path, n_layers: int) -> None:
    save(folder / "mine", 3, n_layers=n_layers)
    made = whole(weights="mine/model.safetensors")
    assert made == Path("reports/mine")
    claims = pd.read_csv(made / "tables" / "claims.csv").set_index("id").verdict
    assert claims["path_expansion_exact"] == "reproduced"
    assert claims["zero_layer_bigram"] == ("not testable here" if n_layers else "not")
    assert claims["one_layer_no_induction"] == ("not" if n_layers else "not testable here")  # random


def test_models_of_one_page_have_the_shortest_context_and_an_ordinary_word_cannot_be_bos(folder: Path) -> None:
    save(folder / "mine", 2, "short", n_ctx=9)
    (folder / "models.yaml").write_text("a: mine/model.safetensors\nb: mine/short.safetensors\n")
    made = run(models="models.yaml", tokenizer="mine/tokenizer.json")
    assert pd.read_csv(made / "tables" / "corpus.csv").n_ctx.tolist() == [9]
    with pytest.raises(ValueError, match="BOS: expected a token that does not occur in the text, got 'w3'"):
        run(weights="mine", bos="w3")


def test_records_equal_an_independent_computation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eigenvalues and composition from the raw matrices, with gains folded and reading matrices centered, to more
    digits than float32 has."""
    state, config = written(1, 2, normalization_type="LN", **POSITIONS[1])
    made: list[Cell] = []
    monkeypatch.setattr(opened, "extract", lambda *given: made.append(extract(*given)) or made[-1])
    run(weights="mine")
    state = {n: t.float().double() for n, t in state.items()}  # as the file has them
    kept = [len(NAMES) - 1, *range(1, len(NAMES) - 1), 0]
    blocks = [{p: state[f"blocks.{layer}.attn.W_{p}"].mT for p in "QKVO"} for layer in range(2)]
    layers = tuple(tuple(map(Head, *b.values())) for b in blocks)
    raw = Weights(state["embed.W_E"].mT[:, kept], state["unembed.W_U"].mT[kept], layers)
    gains = [state[f"{at}.w"] for at in ("blocks.0.ln1", "blocks.1.ln1", "ln_final")]
    folded = centre(fold_gains(raw, gains))
    for row in (row for row in made[0].tables["composition"] if row.kind == "K"):
        early, late = folded.layers[0][row.early_head], folded.layers[1][row.late_head]
        W_QK, W_OV = late.W_Q.mT @ late.W_K, early.W_O @ early.W_V
        expected = (W_QK @ W_OV).norm() / (W_QK.norm() * W_OV.norm())
        assert row.value == pytest.approx(expected.item(), rel=1e-9)
    x = folded.W_E - folded.W_E.mean(0)
    scale = (x.square().mean(0) + config["eps"]).rsqrt()
    found = made[0].tables["eigenvalues"]
    for layer, heads in enumerate(folded.layers):
        for h, head in enumerate(heads):
            W_U = folded.W_U - folded.W_U.mean(0)
            OV = W_U @ head.W_O @ head.W_V @ (folded.W_E * scale)
            expected_values = torch.linalg.eigvals(OV)
            expected_values = expected_values[expected_values.abs().argsort(descending=True)][: len(head.W_V)]
            got = torch.tensor(
                [complex(r.real, r.imag) for r in found if (r.layer, r.head) == (layer, h)], dtype=torch.complex128
            )
            assert got.shape == expected_values.shape
            distance = (expected_values[:, None] - got).abs()
            assert max(distance.amin(0).max(), distance.amin(1).max()) < 1e-9 * expected_values.abs().max()
    for virtual in made[0].tables["virtual_heads"]:
        early, late = folded.layers[0][virtual.early_head], folded.layers[1][virtual.late_head]
        first, second = early.W_O @ early.W_V, late.W_O @ late.W_V
        assert virtual.composition == pytest.approx(
            ((second @ first).norm() / first.norm() / second.norm()).item(), rel=1e-9
        )
        values = torch.linalg.eigvals(second @ first @ (folded.W_E * scale) @ (folded.W_U - folded.W_U.mean(0)))
        positivity = values.real.sum() / values.abs().sum()
        assert virtual.positivity == pytest.approx(positivity.item(), rel=1e-8)


def test_checkpoints_of_a_model_have_a_curve_and_models_share_a_page(folder: Path) -> None:
    save(folder / "mine", 2, "later")
    listed = {"alone": "mine/model.safetensors", "both": {0: "mine/model.safetensors", 9000: "mine/later.safetensors"}}
    (folder / "models.yaml").write_text(yaml.safe_dump(listed))
    made = whole(models="models.yaml")
    assert made == Path("reports/models")
    log = pd.read_csv(made / "tables" / "learning.csv")
    assert log.groupby("cell").tokens_seen.apply(list).to_dict() == {"alone": [0], "both": [0, 9000]}
    changes = pd.read_csv(made / "tables" / "formation.csv")
    assert changes.groupby("cell").size().to_dict() == {"alone": 1, "both": 2}


def test_a_deeper_model_of_this_project_needs_its_own_tokenizer(folder: Path) -> None:
    tokenizer = Tokenizer(WordLevel({BOS_TEXT: 0, **{f"w{i}": i + 1 for i in range(20)}}))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.save(str(folder / "own.json"))
    shape = MODEL.model_copy(update={"n_layers": 3})
    model = Transformer(shape, 21, torch.Generator().manual_seed(0))
    save_checkpoint(folder / "own.safetensors", model, tokenizer_hash(Tokenizer.from_file(str(folder / "own.json"))))
    made = whole(weights="own.safetensors", tokenizer="own.json", name="three")
    cells = pd.read_csv(made / "tables" / "cells.csv").iloc[0]
    assert cells.exactness < 1e-10
    assert cells.n_layers == 3
    with pytest.raises(ValueError, match="trained with tokenizer"):
        run(weights="own.safetensors", tokenizer="mine/tokenizer.json")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "expected TEXT, and one of WEIGHTS and MODELS"),
        ({"weights": "mine", "models": "models.yaml"}, "expected TEXT, and one of WEIGHTS and MODELS"),
        ({"weights": "mine", "text": ""}, "expected TEXT, and one of WEIGHTS and MODELS"),
        ({"weights": "model.pth"}, "model.pth: expected a model's folder or a .safetensors file, found none"),
        ({"weights": "none"}, "none: expected a model's folder or a .safetensors file, found none"),
        ({"weights": "owner/name"}, "owner/name: expected a local file, or a hub repository with model.safetensors"),
        ({"weights": "mine", "tokenizer": "none.json"}, "none.json: expected the tokenizer of the model, found none"),
        ({"weights": "mine", "text": "none/*.txt"}, "TEXT: expected UTF-8 text files"),
        ({"weights": "mine", "bos": "<s>"}, "BOS: expected one token of <s> in TOKENIZER, got none"),
        (
            {"weights": "mine", "name": "figures"},
            "--name: expected the name of a new folder in reports/, got 'figures'",
        ),
        ({"weights": "mine", "name": "../up"}, "--name: expected the name of a new folder in reports/, got"),
        ({"weights": "mine", "context": "4"}, "--context: expected at least 8 tokens per window, got 4"),
    ],
)
def test_a_mistake_is_refused_before_anything_is_written(folder: Path, given: dict[str, str], said: str) -> None:
    (folder / "models.yaml").write_text("one: mine/model.safetensors\n")
    with pytest.raises((ValueError, OSError), match=said):
        run(**given)
    assert not (folder / "reports").exists()


def test_the_lab_takes_every_kind_of_model_with_a_tokenizer_of_this_project() -> None:
    models = [small.random_model(1, positions="sinusoidal"), small.opened_model(2, None), small.random_model(3)]
    assert all(fits_page(model, small.tokenizer()) for model in models)
    models[1].config = models[1].config.model_copy(update={"n_ctx": 11})  # as for short windows
    assert len(packed_model("short", models[1], torch.zeros(2, 11, dtype=torch.long))["further"])
    assert not fits_page(small.random_model(1, smeared_keys=True), small.tokenizer())
    assert not fits_page(models[0], Tokenizer(WordLevel({"a": 0}, unk_token="a")))
