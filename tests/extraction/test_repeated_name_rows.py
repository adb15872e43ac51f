"""The cost of the key edges on repeated names, on an induction pair whose losses are known."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from pathsum.extraction.inputs import EvalData, trace_trained
from pathsum.extraction.repeated_names import tables
from pathsum.model.transformer import Transformer
from pathsum.records.repeated_names import ALL, CONTROL, NAME, RepeatedNameRow
from tests.extraction.small import plain_text
from tests.random_models import D_VOCAB, HOW, LOG, N_CTX, cell_of, config, seated

PREVIOUS, INDUCTION, SILENT = 2, 1, 0
NAMES = ([1, 2, 3], [4, 5], [6, 7, 8])
WORDS = ["<|bos|>", "␣D", "urs", "ley", "␣V", "olde", "␣W", "orm", "tail", *["␣w"] * (D_VOCAB - 9)]


def text() -> EvalData:
    """Return windows in which a name stands at two places; two windows back stands another name."""
    windows = torch.randint(9, D_VOCAB, (6, N_CTX + 1), generator=torch.Generator().manual_seed(1))
    windows[:, 0] = 0
    for i, window in enumerate(windows):
        name = torch.tensor(NAMES[i % 3])
        for start in (4, 15):
            window[start : start + len(name)] = name
    return plain_text(windows, WORDS)


def rows(
    previous: int = PREVIOUS, induction: int = INDUCTION, matching: float = 1.0, data: EvalData | None = None
) -> list[RepeatedNameRow]:
    """Return the record of the induction pair, whose log names these two heads."""
    model, data = seated(PREVIOUS, INDUCTION), data or text()
    scores = [[score * (h == place) for h in range(3)] for place, score in ((previous, 1.0), (induction, matching))]
    last = replace(LOG[-1], previous_token=scores, prefix_matching=[[0.0] * 3, scores[1]])
    return tables(trace_trained(model, cell_of(model), [last], data, HOW), data, HOW)["repeated_names"]


def unmatched(start: int) -> float:
    """Return the loss of a model that raises the current token, and all tokens so far by how often they occurred."""
    windows, losses = text().windows, []
    for i, window in enumerate(F.one_hot(windows, D_VOCAB).double()):
        for at in range(start, start + len(NAMES[i % 3]) - 1):
            losses.append(F.cross_entropy(window[at] + window[: at + 1].mean(0), windows[i, at + 1]))
    return torch.stack(losses).mean().item()


def test_the_key_edges_save_what_a_match_is_worth_on_later_occurrences_alone() -> None:
    """A match raises the right token as much as the direct path raises the current one."""
    matched = F.cross_entropy(torch.tensor([1.0, 1.0, *[0.0] * (D_VOCAB - 2)]), torch.tensor(0)).item()
    found = rows()
    for row in found[:2] + found[5:7]:
        assert (row.windows, row.occurrences, row.tokens, row.name) == (6, 6, 10, "")
        assert row.first_nats == pytest.approx(unmatched(4), abs=1e-5)
        later = row.kind == ALL
        assert row.loss_nats == pytest.approx(matched if later else unmatched(4), abs=1e-5)
        assert row.cut_nats == pytest.approx(unmatched(15 if later else 4), abs=1e-5)
        assert row.cost_nats == pytest.approx(row.cut_nats - row.loss_nats)
        assert row.cost_low is not None
        assert (row.cost_low > 0.5) is later


def test_the_names_of_the_largest_total_cost_come_first() -> None:
    found = rows()
    assert [(r.kind, r.method) for r in found] == [
        (k, m) for m in ("zero", "resample") for k in (ALL, CONTROL, *[NAME] * 3)
    ]
    assert {r.name for r in found[2:4]} == {"D␟urs␟ley", "W␟orm␟tail"}
    assert (found[4].name, found[4].windows, found[4].tokens) == ("V␟olde", 2, 2)
    assert all(r.cost_low is None and r.cost_nats > 0.5 for r in found if r.kind == NAME)


@pytest.mark.parametrize("heads", [(SILENT, INDUCTION), (PREVIOUS, SILENT)])
def test_the_edge_of_another_head_costs_nothing(heads: tuple[int, int]) -> None:
    found = rows(*heads)
    assert len(found) == 10
    assert all(row.cost_nats == pytest.approx(0, abs=1e-6) for row in found)


def test_the_control_leaves_out_pairs_that_stood_in_another_word() -> None:
    data = text()
    data.windows[0, 1:3] = torch.tensor(NAMES[0][:2])
    found = rows(data=data)
    assert [(row.kind, row.tokens) for row in found[:2]] == [(ALL, 10), (CONTROL, 9)]
    assert abs(found[1].cost_nats) < 0.01 < found[0].cost_nats


def test_a_model_without_induction_has_no_rows() -> None:
    assert not rows(matching=0.09)
    one = Transformer(config(n_layers=1), D_VOCAB, torch.Generator().manual_seed(0)).requires_grad_(False)
    assert not tables(trace_trained(one, cell_of(one), LOG, text(), HOW), text(), HOW)["repeated_names"]
