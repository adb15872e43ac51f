"""Matrices stored as two thin factors, so that a vocabulary × vocabulary product is never formed by accident."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Complex, Float
from torch import Tensor


@dataclass(frozen=True)
class LowRank:
    """The matrix ``left @ right``, stored as its two factors. Only ``dense()`` multiplies them."""

    left: Float[Tensor, "write rank"]
    right: Float[Tensor, "rank read"]

    @property
    def shape(self) -> tuple[int, int]:
        return self.left.shape[0], self.right.shape[1]

    def after(self, first: Tensor | LowRank) -> LowRank:
        """Return self · first: the map that applies ``first`` and then this matrix."""
        if isinstance(first, LowRank):
            return LowRank(self.left @ (self.right @ first.left), first.right)
        return LowRank(self.left, self.right @ first)

    def then(self, last: Tensor) -> LowRank:
        """Return last · self: the map that applies this matrix and then ``last``."""
        return LowRank(last @ self.left, self.right)

    @property
    def mT(self) -> LowRank:
        return LowRank(self.right.mT, self.left.mT)

    def dense(self) -> Float[Tensor, "write read"]:
        """Return the whole matrix. Costs write × read numbers of memory."""
        return self.left @ self.right

    def norm(self) -> Float[Tensor, ""]:
        """Return the Frobenius norm, from two rank × rank matrices: ‖LR‖_F² = tr((LᵀL)(RRᵀ))."""
        return ((self.left.mT @ self.left) * (self.right @ self.right.mT).mT).sum().clamp(min=0).sqrt()

    def eigenvalues(self) -> Complex[Tensor, "rank"]:
        """Return the eigenvalues of the rank × rank matrix ``right @ left``, among which are the non-zero ones of the
        square matrix ``left @ right``. The factors must be float32 or float64."""
        assert self.shape[0] == self.shape[1], f"eigenvalues need a square product, got {self.shape}"
        return torch.linalg.eigvals(self.right @ self.left)

    def singular_values(self) -> Float[Tensor, "rank"]:
        """Return the singular values, the largest first. Costs two thin QR decompositions and one singular value
        decomposition of a rank × rank matrix."""
        r_left, r_right = torch.linalg.qr(self.left).R, torch.linalg.qr(self.right.mT).R
        return torch.linalg.svdvals(r_left @ r_right.mT)

    def svd(self) -> tuple[Float[Tensor, "write rank"], Float[Tensor, "rank"], Float[Tensor, "rank read"]]:
        """Return U, S and Vᵀ with U diag(S) Vᵀ = self, in descending order of S. Costs two more thin products than
        ``singular_values``, and singular vectors of the rank × rank matrix."""
        (q_left, r_left), (q_right, r_right) = torch.linalg.qr(self.left), torch.linalg.qr(self.right.mT)
        U, S, V_T = torch.linalg.svd(r_left @ r_right.mT, full_matrices=False)
        return q_left @ U, S, V_T @ q_right.mT
