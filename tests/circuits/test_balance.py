"""Shares of a residual stream: orthogonal parts, parts that cancel, and weights by norm scale."""

import pytest
import torch

from pathsum.circuits.balance import power_share, projection_share, rms_norm
from tests import handmade

ONE = torch.ones(1, 1, dtype=handmade.DTYPE)


def test_parts_at_right_angles_share_by_their_squares() -> None:
    a, b = (torch.tensor([[x]], dtype=handmade.DTYPE) for x in ([3.0, 0.0], [0.0, 4.0]))
    assert (rms_norm(a), rms_norm(b), rms_norm(a + b)) == pytest.approx((3, 4, 5))
    for share in (power_share, projection_share):
        assert (share(a, a + b, ONE), share(b, a + b, ONE)) == pytest.approx((9 / 25, 16 / 25))


def test_parts_that_cancel_have_more_power_than_the_stream_and_project_to_one_all_the_same() -> None:
    a, b = (torch.tensor([[[x]]], dtype=handmade.DTYPE) for x in (3.0, -1.0))
    assert power_share(a, a + b, ONE) == pytest.approx(9 / 4)
    assert (projection_share(a, a + b, ONE), projection_share(b, a + b, ONE)) == pytest.approx((1.5, -0.5))


def test_projections_add_up_to_one_under_any_scale_and_norms_are_root_mean_squares() -> None:
    g = torch.Generator().manual_seed(1)
    parts, scale = handmade.normal(g, 3, 5, 7, 11), torch.rand(5, 7, generator=g, dtype=handmade.DTYPE)
    shares = [projection_share(part, parts.sum(0), scale) for part in parts]
    assert sum(shares) == pytest.approx(1, abs=1e-12)
    assert projection_share(parts[0], parts.sum(0), ONE) != pytest.approx(shares[0], abs=1e-3)
    assert rms_norm(parts[0]) == pytest.approx(parts[0].square().sum().item() ** 0.5 / 35**0.5, rel=1e-12)
