"""Small random models and a small tokenizer, exported as the lab's are."""

import functools
from pathlib import Path

import mpmath
import torch
from tokenizers import Tokenizer

from pathsum.config import ModelConfig, TokenizerConfig
from pathsum.core.weights import Head, Weights
from pathsum.model.opened import Constants, Opened, Rotation
from pathsum.model.transformer import Transformer
from pathsum.report.page.lab import half_precision
from pathsum.text.bos import BOS
from pathsum.text.tokenizer import train_tokenizer

N_CTX, D_VOCAB = 29, 331
HOSTILE = (
    "",
    " ",
    "\r\n\r\n \r\t\x0b\x0c",
    "\x00\x01\x1f\x7f\x80\x85\xa0\ufeff\u2028\u2029\u180e\u200b\u3000",
    "👩‍👩‍👧 🏳️‍🌈 e\u0301\u0323 Å ﷽ กำ नि 한국 𝒳² Ⅷ ½ ᾳ",
    "it's IT'S we'll they've I'd 'tis ''s 's't'd",
    "a" * 3000,
    " " * 700 + "x" + "\n" * 700,
    "é" * 400 + "9" * 400 + "_-" * 400,
    "<|bos|><script>alert(1)</script>&amp;",
    "\u202eright to left \u0627\u0644",
    "tail \n\n  x  \t\n",
)


@functools.cache
def documents() -> tuple[str, ...]:
    """200 documents: pieces of the files of a pinned distribution, so that they change with requirements.lock alone."""
    files = sorted(Path(mpmath.__file__).parent.rglob("*.py"))
    texts = [text for file in files if (text := file.read_text(encoding="utf-8"))]
    return tuple(texts[i % len(texts)][37 * i % len(texts[i % len(texts)]) :][:600] for i in range(200))


@functools.cache
def tokenizer() -> Tokenizer:
    return train_tokenizer((*documents(), *HOSTILE), TokenizerConfig(d_vocab=D_VOCAB, train_bytes=1 << 20))


@functools.cache
def other_tokenizer() -> Tokenizer:
    """Return the tokenizer of another text, with fewer tokens."""
    return train_tokenizer(documents()[:40], TokenizerConfig(d_vocab=D_VOCAB - 40, train_bytes=1 << 20))


def random_model(seed: int, d_vocab: int = D_VOCAB, **changes: object) -> Transformer:
    """Weights of order 1, as the page has them."""
    plain = {"n_layers": 2, "n_heads": 3, "d_head": 5, "d_model": 13, "embedding_std": 0.7, "n_ctx": N_CTX}
    config = ModelConfig(**{**plain, "positions": "relative", "norm": "rms", "smeared_keys": False, **changes})  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(seed)
    model = Transformer(config, d_vocab, generator).requires_grad_(False)
    for p in model.parameters():
        p.add_(0.4 * torch.randn(p.shape, generator=generator))
    return half_precision(model)


def opened_model(seed: int, rotation: Rotation | None, n_layers: int = 2, n_heads: int = 3) -> Transformer:
    """Weights, biases and positions of order 1."""
    g = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return 0.5 * torch.randn(*shape, generator=g)

    d_model, d_head = 13, 6
    shapes = ((d_head, d_model),) * 3 + ((d_model, d_head),)
    layers = tuple(tuple(Head(*(normal(*s) for s in shapes)) for _ in range(n_heads)) for _ in range(n_layers))
    weights = Weights(normal(d_model, D_VOCAB), normal(D_VOCAB, d_model), layers)
    queries = (n_heads, 1 if rotation else N_CTX, d_head)  # a bias, or one with positions
    added = [
        Constants(normal(*queries), normal(*queries), normal(n_heads, 1, d_head), normal(d_model), None)
        for _ in range(n_layers)
    ]
    made = Opened(weights, added, normal(N_CTX, d_model), normal(D_VOCAB), "layer", 1e-3, N_CTX, "standard", rotation)
    return half_precision(made)


def turns(wave: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines of rotary positions of adjacent pairs."""
    angles = torch.arange(N_CTX)[:, None] * torch.tensor([1.0, 0.1])[: wave // 2].repeat_interleave(2)
    return angles.cos(), angles.sin()


def windows(texts: tuple[str, ...], words: Tokenizer | None = None) -> torch.Tensor:
    """BOS and the first tokens of each text, repeated where it is short."""
    rows = [(words or tokenizer()).encode(text).ids for text in texts]
    return torch.tensor([[BOS, *(row * N_CTX)[:N_CTX]] for row in rows])
