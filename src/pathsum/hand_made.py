"""Hand-made models whose circuits are known exactly, to learn on and to test on without training."""

import math

import torch
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split

from pathsum.api import Model
from pathsum.config import ModelConfig
from pathsum.core.weights import Head, Weights
from pathsum.model.transformer import CLAMPED, Transformer
from pathsum.text.bos import BOS, BOS_TEXT
from pathsum.text.tokenizer import Codec, printable

LETTERS, N_CTX = "abcdefghijklmnopqrstuvwxyz ", 64


def induction_pair(letters: str = LETTERS, strength: float = 30.0, written: float = 10.0) -> Model:
    """Return a model whose tokens are ``letters``, with one head in each of two layers: a previous-token head, and an
    induction head that K-composes with it.

    ``strength`` is by how many nats the induction head prefers a match, and ``written`` by how many it raises what it
    attends to. Weights: ``induction_weights``. ValueError if a letter is given twice."""
    if len(set(letters)) < len(letters):
        raise ValueError(f"expected different letters, got {letters!r}")
    vocabulary = {BOS_TEXT: BOS} | {letter: i for i, letter in enumerate(letters, 1)}
    tokenizer = Tokenizer(WordLevel(vocabulary))
    tokenizer.pre_tokenizer = Split(Regex("."), "isolated")
    weights = induction_weights(len(vocabulary), strength, written)
    net = transformer(weights, N_CTX)
    with torch.no_grad():
        net.layers[0].bias[0, 1] = CLAMPED  # type: ignore[operator]
    return Model(
        net.eval().requires_grad_(False),
        Codec(tokenizer, [printable(name.encode()) for name in vocabulary]),
        "hand-made induction pair",
    )


def induction_weights(d_vocab: int, strength: float = 30.0, written: float = 1.0) -> Weights:
    """Return the weights of a previous-token head, whose pattern comes from positions, and of an induction head that
    K-composes with it, in float64.

    The residual stream has two rooms of d_vocab coordinates, in which token t is the t-th unit vector. Room 0 holds the
    current token and room 1 the previous token. The late head matches room 0 of the query with room 1 of the key by
    ``strength`` nats, and copies ``written`` times. Only room 0 is unembedded."""
    here, before = torch.eye(2 * d_vocab, dtype=torch.float64).split(d_vocab)
    nothing = torch.zeros_like(here)
    previous = Head(nothing, nothing, here, before.mT)
    induction = Head(strength * math.sqrt(d_vocab) * here, before, here, written * here.mT)
    return Weights(here.mT, here, ((previous,), (induction,)))


def transformer(weights: Weights, n_ctx: int) -> Transformer:
    """Return a model with these ``weights``, without a norm, in float32. Its heads attend by content alone, until their
    position biases are set."""
    d_model, d_vocab = weights.W_E.shape
    first = weights.layers[0][0]
    shape = ModelConfig(
        n_layers=len(weights.layers), n_heads=len(weights.layers[0]), d_head=len(first.W_Q), d_model=d_model,
        embedding_std=1.0, n_ctx=n_ctx, positions="relative", norm="none", smeared_keys=False,
    )  # fmt: skip
    return loaded(Transformer(shape, d_vocab, torch.Generator()), weights)


@torch.no_grad()
def loaded(net: Transformer, weights: Weights) -> Transformer:
    """Return ``net`` with these ``weights``."""
    net.W_E.copy_(weights.W_E)
    net.W_U.copy_(weights.W_U)
    for layer, heads in zip(net.layers, weights.layers, strict=True):
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            getattr(layer, name).copy_(torch.stack([getattr(head, name) for head in heads]))
    return net
