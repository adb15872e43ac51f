"""Random rotations are Haar-distributed."""

import torch

from pathsum.statistics.rotation import random_rotation


def test_rotations_are_orthogonal_and_have_no_trace_on_average() -> None:
    """E tr = 0 and E tr² = 1 under the Haar distribution. Without the correction of signs, the mean is −2.2 at d =
    17."""
    generator = torch.Generator().manual_seed(0)
    turns = [random_rotation(17, generator) for _ in range(1009)]
    torch.testing.assert_close(turns[0] @ turns[0].mT, torch.eye(17, dtype=torch.float64))
    traces = torch.stack([turn.trace() for turn in turns])
    assert abs(traces.mean()) < 4 / 1009**0.5
    assert abs(traces.square().mean() - 1) < 4 * (2 / 1009) ** 0.5
