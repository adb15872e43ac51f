"""The K-edge of the induction circuit, compared with the strongest other edge, paired by window."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from pathsum.extraction.causal import Trial, edge_contrasts
from pathsum.records.ablations import EdgeContrastRow
from pathsum.records.roles import HeadRoles

ROLES = HeadRoles((0, 0), (1, 1))
KEY, QUERY = (Trial("edge", (1, 1), "zero", kind=kind, early=early) for kind, early in (("K", (0, 0)), ("Q", (0, 1))))
ELSEWHERE = Trial("edge", (1, 0), "zero", kind="K", early=(0, 0))  # the previous-token head, read by another: no rival
N = 13


def contrasts(rises: dict[Trial, Tensor], roles: HeadRoles = ROLES) -> list[EdgeContrastRow]:
    return edge_contrasts(list(rises), torch.stack([*rises.values()]), roles, torch.Generator().manual_seed(0))


def noise(seed: int) -> Tensor:
    return torch.randn(N, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_windows_that_differ_do_not_hide_a_difference_that_each_window_has() -> None:
    hard = 3 + noise(1)
    (found,) = contrasts({KEY: hard + 0.2 + 0.01 * noise(2), QUERY: hard, ELSEWHERE: hard + 9})
    assert (found.other_kind, found.other_early_head) == ("Q", 1)
    assert 0.18 < found.low < found.difference_nats < found.high < 0.22


def test_an_edge_that_leads_by_less_than_its_error_does_not_lead() -> None:
    """Guards against ranking K first where it exceeds Q by 0.036 [−0.017, 0.091]."""
    lead = 0.036 + 0.1 * (noise(3) - noise(3).mean())
    (found,) = contrasts({KEY: 1 + lead, QUERY: torch.ones(N, dtype=torch.float64)})
    assert found.difference_nats == pytest.approx(0.036)
    assert found.low < 0 < found.high


def test_each_method_has_its_own_rival() -> None:
    one = torch.ones(N, dtype=torch.float64)
    methods = [replace(trial, method="mean") for trial in (KEY, QUERY)]
    found = contrasts({KEY: 2 * one, QUERY: one, methods[0]: one, methods[1]: 3 * one})
    assert [(row.method, row.difference_nats) for row in found] == [("zero", 1), ("mean", -2)]


@pytest.mark.parametrize("roles", [HeadRoles(None, None), HeadRoles((0, 0), (0, 1))])
def test_without_such_an_edge_there_is_no_contrast(roles: HeadRoles) -> None:
    assert contrasts({KEY: noise(4), QUERY: noise(5)}, roles) == []
