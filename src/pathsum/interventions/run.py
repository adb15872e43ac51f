"""Interventions on a run of the model: ablation, activation patching, path patching and forced patterns.

Definitions: docs/framework.md §5.8 and §5.9. Examples: docs/interventions.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.model.transformer import Transformer

Place = tuple[int, int]  # (layer, head)
SIDES = ("Q", "K", "V")
CHUNK = 128  # positions whose logits are in memory at the same time: half a megabyte at d_vocab 1,024


@dataclass(frozen=True)
class HeadActivation:
    """The pattern of a head and its writes. With ``mixed``, the pattern times the values, losses can cost less
    (``Run.losses``); ``output`` must then be W_O times ``mixed``, which is not checked."""

    pattern: Float[Tensor, "batch query key"]
    output: Float[Tensor, "batch pos d_model"]
    mixed: Float[Tensor, "batch pos d_head"] | None = None


class Run:
    """A run of a model, with or without interventions.

    Each intervention returns a new run, and one per head can be combined. Replacements are computed from the run
    without intervention (``trace``). Later patterns and norms respond, unless ``freeze_patterns`` freezes them. Results
    are computed on access, from the layer of the first replaced head on. ValueError for a head that the model does not
    have, and for a second intervention on a head.
    """

    def __init__(self, model: Transformer, tokens: Int[Tensor, "batch pos"]) -> None:
        self.model, self.tokens, self.trace = model, tokens, model.trace(tokens)
        self.streams = self.trace.streams  # without intervention
        self.places = [(layer, head) for layer, o in enumerate(self.trace.outputs) for head in range(o.shape[1])]
        self.replaced: Mapping[Place, HeadActivation] = {}
        self.frozen = False
        self._clean: dict[int, tuple[Tensor, ...]] = {}  # queries, keys and values by layer; shared by all runs

    # ---- interventions --------------------------------------------------------------------------------------------

    def replace(self, activations: Mapping[Place, HeadActivation]) -> Run:
        """Replace the patterns and the writes of heads. ValueError for an unknown head, a pattern or write of another
        shape than the head's, or a head that is replaced already: the second replacement would undo the first."""
        self._require(activations)
        for place, new in activations.items():
            self._require_shape(place, new.pattern, self.trace.patterns[0][:, 0])
            self._require_shape(place, new.output, self.streams[0])
        if again := sorted(set(activations) & set(self.replaced)):
            raise ValueError(
                f"expected one intervention per head, got a second one on head {again[0]}, which would undo the first; "
                "patch several edges into a head with one patch_edges, or begin with the run without intervention"
            )
        return self._with(replaced={**self.replaced, **activations})

    def patch_heads(self, writes: Mapping[Place, Float[Tensor, "batch pos d_model"]]) -> Run:
        """Replace the writes of heads and keep their patterns (activation patching). Errors as in ``replace``."""
        for place, write in writes.items():
            self._require_shape(place, write, self.streams[0])
        return self.replace({place: HeadActivation(self.pattern(place), write) for place, write in writes.items()})

    def zero(self, *heads: Place) -> Run:
        """Zero-ablate heads: replace the write of each head by zeros. Errors as in ``replace``."""
        return self.patch_heads({place: torch.zeros_like(self.streams[0]) for place in heads})

    def mean(self, *heads: Place) -> Run:
        """Mean-ablate heads: replace the write of each head by its mean over windows, at each position. ValueError for
        a single window, and as in ``replace``."""
        self._require_others(1)
        return self.patch_heads({place: self.mean_output(place) for place in heads})

    def resample(self, *heads: Place, shift: int = 1) -> Run:
        """Resample-ablate heads: replace the write of each head by its write ``shift`` windows earlier in the batch
        (cyclic). ValueError if ``shift`` is a multiple of the number of windows, and as in ``replace``."""
        self._require_others(shift)
        return self.patch_heads({place: self.output(place).roll(shift, 0) for place in heads})

    def patch_edge(self, early: Place, late: Place, side: str, write: Float[Tensor, "batch pos d_model"]) -> Run:
        """Patch one edge (path patching): the ``side`` ("Q", "K" or "V": queries, keys or values) of head ``late``
        reads ``write`` in place of the write of head ``early`` (docs/framework.md §5.9). Costs and errors as in
        ``patch_edges``."""
        return self.patch_edges(late, {(side, early): write})

    def patch_edges(self, late: Place, writes: Mapping[tuple[str, Place], Float[Tensor, "batch pos d_model"]]) -> Run:
        """Patch several edges into head ``late``. ``writes`` maps (side, early head) to the new write. Costs the
        queries, keys and values of the layer once per side. Norm scale and errors as in ``patched_layer`` and
        ``replace``."""
        self._require([late])
        (layer, head), heads = late, self.model.attention(late[0])
        q, k, v = self._patched(layer, writes, at := slice(head, head + 1))
        pattern = heads.pattern(q, k, at)[:, 0]
        mixed = pattern @ v[:, 0]
        return self.replace({late: HeadActivation(pattern, mixed @ heads.W_O[head].mT, mixed)})

    def force_pattern(self, head: Place, pattern: Float[Tensor, "*batch query key"]) -> Run:
        """Replace the attention pattern of a head by ``pattern``: one for all windows, or one per window. Its values
        stay.

        Rows need not be positive or sum to 1, so that a part of a pattern can be forced. ValueError if the pattern has
        another shape, is not finite, or attends to positions after the query."""
        n_windows, n = self.tokens.shape
        if tuple(pattern.shape) not in ((n, n), (1, n, n), (n_windows, n, n)):
            raise ValueError(
                f"head {head}: expected a pattern of shape ({n}, {n}) or ({n_windows}, {n}, {n}), query × key, got "
                f"{tuple(pattern.shape)}"
            )
        if not pattern.isfinite().all() or pattern.triu(1).any():
            raise ValueError(
                f"head {head}: expected a pattern (query × key) of finite numbers that are 0 for keys after the query, "
                "got another one; a head sees earlier positions only"
            )
        forced = pattern.expand(len(self.tokens), -1, -1)
        return self.replace({head: HeadActivation(forced, self.write(head, forced))})

    def freeze_patterns(self) -> Run:
        """Freeze all norm scales, and the patterns of all heads that are not replaced, so that only paths through
        replaced heads change (docs/framework.md §2.1), and the logits are affine in the writes of replaced heads."""
        return self._with(frozen=True)

    # ---- results --------------------------------------------------------------------------------------------------

    @property
    def read(self) -> Float[Tensor, "batch pos d_model"]:
        """Return the normalized final residual stream, which the unembedding reads."""
        return self._results[0]

    @property
    def patterns(self) -> tuple[tuple[Float[Tensor, "batch query key"], ...], ...]:
        """Return the attention patterns by layer and head."""
        return self._results[1]

    def keeps_pattern(self, place: Place) -> bool:
        """Return whether a head certainly has its pattern without intervention, without computing it."""
        self._require([place])
        first = min((layer for layer, _ in self.replaced), default=len(self.trace.outputs))
        return place not in self.replaced and (self.frozen or place[0] <= first)

    def logits(self, at: slice = slice(None)) -> Float[Tensor, "batch n vocab"]:
        """Return the next-token logits at positions ``at``. Only these positions are unembedded."""
        return F.linear(self.read[:, at], self.model.W_U, self.model.b_U)

    def losses(
        self, targets: Int[Tensor, "batch pos"] | None = None, at: slice = slice(None, -1)
    ) -> Float[Tensor, "batch n"]:
        """Return the loss of predicting the next token, or ``targets[:, p]``, at each position p of ``at``, in nats.

        ValueError if ``at`` contains the last position, which has no next token, without ``targets``, or if a target is
        not in the vocabulary. Costs d_model multiplications per logit, or d_head if the only change is one head of the
        last layer whose ``HeadActivation`` has ``mixed``."""
        last = self.tokens.shape[1] - 1
        if targets is None and last in range(last + 1)[at]:
            raise ValueError(
                f"expected positions before the last ({last}), which has no next token, got {at}; give targets"
            )
        wanted = (self.tokens.roll(-1, 1) if targets is None else targets)[:, at].flatten()
        if targets is not None and wanted.numel() and not 0 <= wanted.min() <= wanted.max() < len(self.model.W_U):
            raise ValueError(f"targets: expected tokens from 0 to {len(self.model.W_U) - 1}, got others")
        each = torch.cat([F.cross_entropy(logits, wanted[some], reduction="none") for some, logits in self._chunks(at)])
        return each.view(len(self.tokens), -1)

    # ---- activations without intervention, and replacements for them ----------------------------------------------

    def pattern(self, place: Place) -> Float[Tensor, "batch query key"]:
        """Return the pattern that a head has without intervention, even if this run replaces it."""
        self._require([place])
        return self.trace.patterns[place[0]][:, place[1]]

    def output(self, place: Place) -> Float[Tensor, "batch pos d_model"]:
        """Return the write that a head has without intervention, even if this run replaces it."""
        self._require([place])
        return self.trace.outputs[place[0]][:, place[1]]

    def mean_output(self, place: Place) -> Float[Tensor, "batch pos d_model"]:
        """Return the mean over windows of a head's write without intervention, repeated for every window."""
        output = self.output(place)
        return output.mean(0, keepdim=True).expand_as(output)

    def patched_layer(
        self, layer: int, writes: Mapping[tuple[str, Place], Float[Tensor, "batch pos d_model"]]
    ) -> list[HeadActivation]:
        """Return the activations of all heads of ``layer`` when their queries, keys or values read new writes in place
        of those of earlier heads.

        ``writes`` holds the new write by side ("Q", "K" or "V") and earlier head (docs/framework.md §5.9). The norm
        before the layer keeps its scale, so the effects of several edges add up in what the layer reads. Costs the
        layer once, and its queries, keys and values once more per side. ValueError for an unknown layer or side, a head
        that is not in an earlier layer, or a write of another shape."""
        self._require([(layer, 0)])
        heads = self.model.attention(layer)
        q, k, v = self._patched(layer, writes)
        pattern = heads.pattern(q, k) if {side for side, _ in writes} & {"Q", "K"} else self.trace.patterns[layer]
        mixed = pattern @ v
        parts = (pattern, mixed @ heads.W_O.mT, mixed)
        return [HeadActivation(*each) for each in zip(*(part.unbind(1) for part in parts), strict=True)]

    def write(
        self,
        place: Place,
        pattern: Float[Tensor, "batch query key"],
        x: Float[Tensor, "batch pos d_model"] | None = None,
        scale: Float[Tensor, "batch pos"] | None = None,
    ) -> Float[Tensor, "batch pos d_model"]:
        """Return the write of a head under ``pattern``, if it reads ``x`` at the norm scale ``scale`` (by default,
        those of the run without intervention). The scale does not respond, so the result is linear in ``x``."""
        self._require([place])
        layer, head = place
        heads, x = self.model.attention(layer), self.streams[layer] if x is None else x
        read = self.model.rescale(x, self.trace.scales[layer] if scale is None else scale)
        return pattern @ heads.values(read, slice(head, head + 1))[:, 0] @ heads.W_O[head].mT

    def order_by_order(self) -> list[Float[Tensor, "batch pos d_model"]]:
        """Return the normalized final stream of all paths through at most 0, 1, 2, … n_layers heads
        (docs/framework.md §2.7).

        The procedure of Elhage et al. 2021 ("term importance"): patterns are frozen, each head reads the stream of the
        previous order, and norm scales are those of the included paths. Without a norm, the logits are the running sums
        of ``paths.by_order``. The last stream is the model's. Interventions are ignored. Costs n_layers + 1 runs."""
        reads, writes = [], [torch.zeros_like(self.streams[0])] * len(self.model.layers)
        for _ in range(len(self.model.layers) + 1):
            x, after = self.streams[0], []
            for layer, write in enumerate(writes):
                after.append(self._frozen_heads(layer, self.model.normalise(x)[0]).sum(1))
                x = self.model.joined(x + write, layer + 1)
            reads.append(self.model.normalise(x)[0])
            writes = after
        return reads

    # ---- private --------------------------------------------------------------------------------------------------

    def _require(self, heads: Iterable[Place]) -> None:
        if unknown := sorted(set(heads) - set(self.places)):
            last = max(self.places, default=None)
            raise ValueError(f"expected heads (layer, head) from (0, 0) to {last}, got {unknown[0]}")

    def _require_shape(self, place: Any, given: Tensor, like: Tensor) -> None:
        """Require the shape of ``like``. A tensor of another shape could be broadcast without an error."""
        if given.shape != like.shape:
            raise ValueError(f"{place}: expected an activation of shape {tuple(like.shape)}, got {tuple(given.shape)}")

    def _require_others(self, shift: int) -> None:
        if shift % len(self.tokens) == 0:
            raise ValueError(
                f"expected other windows to take writes from, got {len(self.tokens)} in all and a shift of {shift}: "
                "nothing would be ablated; run on more windows, or change the shift"
            )

    def _with(self, **changes: Any) -> Run:
        changed = copy(self)
        vars(changed).pop("_results", None)
        vars(changed).update(changes)
        return changed

    @cached_property
    def _results(self) -> tuple[Tensor, tuple[tuple[Tensor, ...], ...]]:
        """Return the normalized final stream and all patterns."""
        outputs, patterns = self.trace.outputs, [p.unbind(1) for p in self.trace.patterns]
        first = min((layer for layer, _ in self.replaced), default=len(outputs))
        x = self.streams[first]
        for layer in range(first, len(outputs)):
            here = {head: new for (at, head), new in self.replaced.items() if at == layer}
            if layer > first and len(here) == outputs[layer].shape[1]:  # the layer itself need not run
                x = self.model.joined(x + sum(new.output for new in here.values()), layer + 1)
                patterns[layer] = tuple(here[h].pattern for h in sorted(here))
                continue
            if layer == first:
                pattern, output, x = self.trace.patterns[first], outputs[first], self.streams[first + 1]
            elif self.frozen:
                pattern, output = self.trace.patterns[layer], self._frozen_heads(layer, self._rescaled(layer, x))
                x = self.model.joined(x + output.sum(1), layer + 1)
            else:
                pattern, output = self.model.attention(layer).heads(self.model.normalise(x)[0])
                x = self.model.joined(x + output.sum(1), layer + 1)
            for head, new in here.items():
                x = x + (new.output - output[:, head])
            patterns[layer] = tuple(here[h].pattern if h in here else p for h, p in enumerate(pattern.unbind(1)))
        return self._rescaled(-1, x) if self.frozen else self.model.normalise(x)[0], tuple(patterns)

    def _chunks(self, at: slice) -> Iterator[tuple[slice, Float[Tensor, "n vocab"]]]:
        """Yield the logits at positions ``at`` of all windows, ``CHUNK`` at a time, so that they stay in the cache."""
        (place, new), *others = self.replaced.items() or [((-1, 0), None)]
        if others or new is None or new.mixed is None or place[0] != len(self.trace.outputs) - 1:
            for some, read in _split(self.read[:, at]):
                yield some, F.linear(read, self.model.W_U, self.model.b_U)
            return
        (layer, head), heads = place, self.model.attention(place[0])
        was = self.pattern(place) @ self._queries_keys_values(layer)[2][:, head]
        change, before = (new.mixed - was)[:, at], self.trace.scales[-1][:, at]
        W_O = heads.W_O[head]
        after = before if self.frozen else self.model.normalise(self.streams[-1][:, at] + change @ W_O.mT)[1]
        through = self.model.centred(W_O.mT) @ self.model.W_U.mT
        ratio, added = (after / before)[..., None].flatten(0, 1), (after[..., None] * change).flatten(0, 1)
        for some, logits in _split(self.trace.logits[:, at]):
            found = torch.addmm(logits * ratio[some], added[some], through)
            yield some, found if self.model.b_U is None else found + (1 - ratio[some]) * self.model.b_U

    def _queries_keys_values(self, layer: int) -> tuple[Tensor, ...]:
        if layer not in self._clean:
            read = self._rescaled(layer, self.streams[layer])
            self._clean[layer] = self.model.attention(layer).queries_keys_values(read)
        return self._clean[layer]

    def _patched(self, layer: int, writes: Mapping[tuple[str, Place], Tensor], at: slice = slice(None)) -> list[Tensor]:
        """Return queries, keys and values of heads, each from the stream with the patched writes of its side."""
        self._require(early for _, early in writes)
        if wrong := [(side, early) for side, early in writes if early[0] >= layer or side not in SIDES]:
            side, early = wrong[0]
            raise ValueError(
                f"expected a side of {SIDES} and a head of a layer before {layer}, got {side!r} and head {early}; "
                "a head reads earlier layers only"
            )
        for place, write in writes.items():
            self._require_shape(place, write, self.streams[0])
        heads, x = self.model.attention(layer), self.streams[layer]
        parts = [part[:, at] for part in self._queries_keys_values(layer)]
        for i, side in enumerate(SIDES):
            if changes := [write - self.output(early) for (of, early), write in writes.items() if of == side]:
                parts[i] = heads.side(side)(self._rescaled(layer, x + sum(changes)), at)
        return parts

    def _frozen_heads(self, layer: int, read: Tensor) -> Tensor:
        heads = self.model.attention(layer)
        return self.trace.patterns[layer] @ heads.values(read) @ heads.W_O.mT

    def _rescaled(self, layer: int, x: Tensor) -> Tensor:
        """Normalize a stream with the norm scale that ``layer`` (−1: the unembedding) has without intervention."""
        return self.model.rescale(x, self.trace.scales[layer])


def _split(values: Float[Tensor, "batch n last"]) -> Iterator[tuple[slice, Float[Tensor, "some last"]]]:
    """Flatten windows and positions into one axis, and yield chunks of ``CHUNK`` entries, each with its slice."""
    flat = values.flatten(0, 1)
    for start in range(0, len(flat), CHUNK):
        some = slice(start, start + CHUNK)
        yield some, flat[some]
