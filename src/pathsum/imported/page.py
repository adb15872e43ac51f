"""Open a model that a report page carries for its lab: weights in float16, and the tokenizer."""

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from torch import Tensor

from pathsum.config import ModelConfig
from pathsum.imported.text import BYTES
from pathsum.model.positions import Relative
from pathsum.model.transformer import Transformer
from pathsum.text.bos import BOS_TEXT

BLOCK = r'<script type="application/json" {}>(.*?)</script>'


def from_page(path: Path, name: str) -> tuple[Transformer, Tokenizer, str]:
    """Return a model of the lab in a report, by default the deepest, with its tokenizer and its name. ValueError if the
    page has no such model."""
    page = path.read_text(encoding="utf-8")
    about = re.search(BLOCK.format('id="lab-data"'), page, re.S)
    models = dict(re.findall(BLOCK.format('data-widget="lab" data-model="([^"]*)"'), page, re.S))
    if about is None or (name and name not in models):
        found = ", ".join(models) or "none"
        raise ValueError(f"{path}: expected a report whose lab has {name or 'a model'}, got one with {found}")
    lab = json.loads(about[1])
    name = name or lab["deepest"]
    if "further" in (model := json.loads(models[name])):
        raise ValueError(f"{path}: {name} has biases, LayerNorm or other positions than relative; open its own file")
    return _model(model), _tokenizer(lab["texts"][lab["text_of"][name]]["tokenizer"]), name


def _model(about: dict[str, Any]) -> Transformer:
    planes = np.frombuffer(zlib.decompress(base64.b64decode(about["numbers"])), np.uint8).reshape(2, -1)
    numbers = torch.from_numpy(np.ascontiguousarray(planes.T).view("<f2")[:, 0].astype(np.float32))
    sizes = {key: about[key] for key in ("n_layers", "n_heads", "d_head", "d_model", "n_ctx", "norm")}
    config = ModelConfig(**sizes, positions="relative", embedding_std=1.0, smeared_keys=False)
    net, at = Transformer(config, about["d_vocab"], torch.Generator()), 0

    def take(*shape: int) -> Tensor:
        nonlocal at
        at += (size := int(np.prod(shape)))
        return numbers[at - size : at].view(shape)

    d_head, d_model = config.d_head, config.d_model
    with torch.no_grad():
        net.W_E.copy_(take(about["d_vocab"], d_model).mT)
        net.W_U.copy_(take(about["d_vocab"], d_model))
        for heads in map(net.attention, range(config.n_layers)):
            for h in range(config.n_heads):
                for part in (heads.W_Q, heads.W_K, heads.W_V):
                    part[h].copy_(take(d_head, d_model))
                heads.W_O[h].copy_(take(d_model, d_head))
                cast(Relative, heads).bias[h].copy_(take(config.n_ctx))
                take(config.n_ctx, d_head)  # the mean of A v, for mean ablation on the page
    return net.eval().requires_grad_(False)


def _tokenizer(about: dict[str, Any]) -> Tokenizer:
    """Return the byte-level tokenizer with these ids of bytes and these merges."""
    letter_of = {byte: letter for letter, byte in BYTES.items()}
    names = {i: letter_of[byte] for byte, i in enumerate(about["bytes"])}
    merges = []
    for a, b, both in about["merges"]:
        merges.append((names[a], names[b]))
        names[both] = names[a] + names[b]
    tokenizer = Tokenizer(BPE({BOS_TEXT: 0, **{name: i for i, name in names.items()}}, merges))
    tokenizer.pre_tokenizer, tokenizer.decoder = ByteLevel(add_prefix_space=False), ByteLevelDecoder()
    return tokenizer
