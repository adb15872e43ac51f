"""An attention-only transformer that needs nothing but torch, for weights that ``pathsum.export`` wrote.

Patterns and head outputs are modules of their own, so that hooks can read and replace them: ``layers[l].pattern`` gives
(batch, head, query, key), ``layers[l].result`` what each head writes (batch, head, position, d_model).

    state, about = safetensors.torch.load_file("model.safetensors"), json.load(open("config.json"))
    logits = Model(state, **about["model"])(tokens)  # (batch, position), BOS first
"""

import torch
from torch import Tensor, nn


class Layer(nn.Module):
    """The heads of one layer."""

    W_Q: Tensor  # (head, d_head, d_model), as W_K and W_V
    W_K: Tensor
    W_V: Tensor
    W_O: Tensor  # (head, d_model, d_head)
    b_Q: Tensor  # (head, position or 1, d_head), as b_K: biases and positions
    b_K: Tensor
    b_V: Tensor
    bias: Tensor  # (head, query − key), in nats
    cos: Tensor  # (position, rotated coordinates)
    sin: Tensor

    def __init__(self, state: dict[str, Tensor], adjacent: bool) -> None:
        super().__init__()
        for name, tensor in state.items():
            self.register_parameter(name, nn.Parameter(tensor))
        self.adjacent, self.pattern, self.result = adjacent, nn.Identity(), nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        at = torch.arange(x.shape[1], device=x.device)
        distance = at[:, None] - at
        q = self.rotated(torch.einsum("bpm,hdm->bhpd", x, self.W_Q) + self.b_Q[:, : len(at)])
        k = self.rotated(torch.einsum("bpm,hdm->bhpd", x, self.W_K) + self.b_K[:, : len(at)])
        v = torch.einsum("bpm,hdm->bhpd", x, self.W_V) + self.b_V
        scores = q @ k.mT / q.shape[-1] ** 0.5 + self.bias[:, distance.clamp(0, self.bias.shape[1] - 1)]
        pattern = self.pattern(scores.masked_fill(distance < 0, -torch.inf).softmax(-1))
        return self.result(pattern @ v @ self.W_O.mT).sum(1)

    def rotated(self, x: Tensor) -> Tensor:
        cos, sin = self.cos[: x.shape[2]], self.sin[: x.shape[2]]
        turned, still = x[..., : cos.shape[1]], x[..., cos.shape[1] :]
        half = cos.shape[1] // 2
        a, b = (turned[..., ::2], turned[..., 1::2]) if self.adjacent else (turned[..., :half], turned[..., half:])
        across = torch.stack([-b, a], -1).flatten(-2) if self.adjacent else torch.cat([-b, a], -1)
        return torch.cat([turned * cos + across * sin, still], -1)


class Model(nn.Module):
    """Embedding, layers of heads, unembedding. ``norm`` is "none", "rms" or "layer", without gains."""

    def __init__(self, state: dict[str, Tensor], norm: str, eps: float, adjacent: bool) -> None:
        super().__init__()
        self.norm, self.eps, n_layers = norm, eps, sum(name.startswith("joining.") for name in state) - 1
        self.W_E, self.W_U, self.b_U = (nn.Parameter(state[name]) for name in ("W_E", "W_U", "b_U"))
        self.joining = nn.ParameterList(state[f"joining.{i}"] for i in range(n_layers + 1))  # positions, biases b_O
        parts = [
            {n.split(".")[2]: t for n, t in state.items() if n.startswith(f"layers.{i}.")} for i in range(n_layers)
        ]
        self.layers = nn.ModuleList(Layer(part, adjacent) for part in parts)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.W_E.mT[tokens] + self.joining[0][: tokens.shape[1]]
        for layer, b_O in zip(self.layers, self.joining[1:], strict=True):
            x = x + layer(self.normed(x)) + b_O
        return self.normed(x) @ self.W_U.mT + self.b_U

    def normed(self, x: Tensor) -> Tensor:
        x = x - x.mean(-1, keepdim=True) if self.norm == "layer" else x
        return x if self.norm == "none" else x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt()
