"""The public interface (docs/api.md): a model with its tokenizer, and what can be asked of it in one line.

Heads are pairs (layer, head), counted from 0. Tables are pandas DataFrames. Logits and losses are in nats.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.behavior import induction, positional
from pathsum.behavior.labels import MOST, TIMES_CHANCE, by_window, duplicate_token, uniform_attention
from pathsum.circuits.atlas import effects, occurrences, source_weight, strongest
from pathsum.circuits.composition import benjamini_hochberg, composition_scores
from pathsum.circuits.eigenvalues import positivity
from pathsum.circuits.paths import all_paths, constant_reads, path_logits, path_name
from pathsum.circuits.qk_ov import ov_circuit, qk_circuit, top_rows
from pathsum.core.storage import read_lines
from pathsum.core.weights import Head, Weights
from pathsum.extraction.inputs import effective
from pathsum.imported.open_weights import open_model
from pathsum.imported.page import from_page
from pathsum.imported.text import read_tokenizer
from pathsum.interventions.run import Place, Run
from pathsum.model.transformer import Trace, Transformer
from pathsum.records.evaluation import Evaluation
from pathsum.records.roles import MATCHES, scored
from pathsum.statistics.bootstrap import independent, mean_intervals
from pathsum.text.bos import BOS
from pathsum.text.repeated import repeated_random
from pathsum.text.tokenizer import Codec, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WINDOWS, LONGEST = 32, 257  # windows of repeated random tokens on which heads are scored, and tokens of a window
ROTATIONS = 2000  # random rotations, from which chance and p-values of composition are computed
WEIGHTS, CHECKPOINTS, TOKENIZER = "model.safetensors", "checkpoints", "tokenizer.json"
ROLES = {"prefix_matching": "induction", "previous_token": "previous token", "duplicate_token": "duplicate token"}
_SEED = 2021

Text = str | Sequence[str] | Int[Tensor, "*window pos"]


def load(
    path: str | Path, *, step: int | None = None, tokenizer: str | Path | None = None, bos: str = "", name: str = ""
) -> Model:
    """Load a model with its tokenizer.

    ``path`` is the folder of a model that this project trained (``models/L2H4S5``), one of its checkpoints, a
    ``.safetensors`` file with weights of TransformerLens, a folder with such a ``model.safetensors``, or the page of a
    report, whose lab has models in float16 (``name`` picks one; by default the deepest). ``step`` picks
    the checkpoint after so many steps of training; by default the last one. ``tokenizer`` is a JSON file of the
    tokenizers library; by default ``tokenizer.json`` beside the weights. ``bos`` names the token that begins a
    sequence, if its name is not a common one. FileNotFoundError if a file is missing; ValueError if the weights cannot
    be read, or if ``step`` has no checkpoint."""
    path = Path(path).expanduser()
    if path.suffix == ".html":
        net, read, name = from_page(path, name)
        return Model(net, Codec.own(read), name)
    file = path if path.is_file() else weights_in(path, step)
    run = folder_of(file)
    spelled = Path(tokenizer).expanduser() if tokenizer else run / TOKENIZER
    if not spelled.is_file():
        raise FileNotFoundError(f"{spelled}: expected the tokenizer of {file.name}, found none; give tokenizer=…")
    read = read_tokenizer(spelled)
    net, codec = open_model(file, read, bos)
    log = read_lines(run / "log.jsonl", Evaluation) if (run / "log.jsonl").is_file() else []
    return Model(net, codec, path.name if path.is_dir() else file.stem, log)


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """An attention-only model with its tokenizer. Id 0 is the token that begins a sequence (BOS)."""

    net: Transformer
    codec: Codec  # the tokenizer, and its printed tokens by id
    name: str
    log: Sequence[Evaluation] = ()  # evaluations during training; none for weights from elsewhere

    def __repr__(self) -> str:
        sizes = [len(layer) for layer in self.weights.layers]
        heads = ", ".join(f"{n} heads" for n in sizes) or "no layers"
        d_model, d_vocab = self.weights.W_E.shape
        return f"{self.name}: {heads}; d_model {d_model}, {d_vocab} tokens, {self.net.n_ctx} positions"

    # ---- tokens ---------------------------------------------------------------------------------------------------

    @property
    def words(self) -> Sequence[str]:
        """Return the printed form of every token, by id; a space is printed as ␣."""
        return self.codec.words

    def tokens(self, text: Text) -> Int[Tensor, "window pos"]:
        """Return the ids of BOS and ``text``, at most as many as the model has positions.

        Several texts become one window each, cut to the shortest; warns of what is cut. Ids pass unchanged. ValueError
        for text that is empty or that the tokenizer cannot encode, and for ids that the model lacks."""
        if isinstance(text, Tensor):
            ids = text.long().reshape(-1, text.shape[-1])
        else:
            given = [text] if isinstance(text, str) else list(text)
            rows = self.codec.encode(given)
            shortest = min(map(len, rows), default=0)
            if not shortest:
                raise ValueError("expected text with at least one token, got an empty one")
            ids = torch.tensor([[BOS, *row[:shortest]] for row in rows])
            if max(map(len, rows)) > (kept := min(shortest, self.net.n_ctx - 1)):
                warnings.warn(f"{self.name}: texts are cut to {kept} tokens", stacklevel=2)
        ids = ids[:, : self.net.n_ctx]
        if not 0 <= int(ids.min()) <= int(ids.max()) < len(self.words):
            raise ValueError(f"expected ids from 0 to {len(self.words) - 1}, got {int(ids.min())} to {int(ids.max())}")
        return ids

    def printed(self, text: Text) -> list[str]:
        """Return the printed tokens of one text, BOS first."""
        return [self.words[i] for i in self.tokens(text)[0].tolist()]

    def run(self, text: Text) -> Run:
        """Run the model on ``text``. The result has ``losses()``, ``logits()`` and ``patterns``, and can be intervened
        on: ``zero``, ``mean``, ``resample``, ``patch_edge``, ``force_pattern`` (docs/interventions.md)."""
        return Run(self.net, self.tokens(text))

    def attention(self, text: Text) -> Attention:
        """Return the attention patterns of all heads on one text, the first of several."""
        ids = self.tokens(text)[:1]
        return Attention(self.printed(ids), self._trace(ids).patterns)

    # ---- weights --------------------------------------------------------------------------------------------------

    @cached_property
    def weights(self) -> Weights:
        """Return W_E, W_U and the matrices of every head, norms folded in; each column of W_E is scaled as the norm
        scales this token alone (docs/framework.md §1.4)."""
        return effective(self.net)

    @property
    def places(self) -> list[Place]:
        """Return all heads."""
        return [(layer, h) for layer, heads in enumerate(self.weights.layers) for h in range(len(heads))]

    def composition(self, rotations: int = ROTATIONS) -> pd.DataFrame:
        """Return the composition scores (docs/framework.md §4.1) of every pair of heads in different layers, the
        largest first.

        A row has ``kind`` (Q, K or V), ``early``, ``late``, ``score`` (0..1), ``chance`` (1/√d_model), ``p_value``
        (two-sided, under random rotations, at least 2 / (1 + ``rotations``)) and ``q_value`` (Benjamini–Hochberg)."""
        weights, generator = self.weights.to(torch.float64), torch.Generator().manual_seed(_SEED)
        found = composition_scores(weights, rotations, generator)
        q_values = benjamini_hochberg(torch.tensor([s.p_value for s in found], dtype=torch.float64)).tolist()
        rows = [
            {"kind": s.kind, "early": s.early, "late": s.late, "score": s.value, "chance": s.chance}
            | {"p_value": s.p_value, "q_value": q}
            for s, q in zip(found, q_values, strict=True)
        ]
        names = ["kind", "early", "late", "score", "chance", "p_value", "q_value"]
        return pd.DataFrame(rows, columns=names).sort_values("score", ascending=False, ignore_index=True)

    def skip_trigrams(self, head: Place, n: int = 20, text: Text | None = None) -> pd.DataFrame:
        """Return ``n`` skip-trigrams (source … destination → out) of a head, the strongest first.

        Without ``text``, they are read off the weights: for each source the output that its OV circuit raises most
        (``ov_nats``) and the destination that attends to it most (``qk_nats``), ranked by the product of both. With
        ``text``, they are those that the head adds most to the logits of the actual next tokens of this text, summed
        over all occurrences (``effect_nats``; docs/framework.md §3.8). Tables are circuits of the embedding alone,
        which is exact in the first layer. ValueError for an unknown head, or ``n`` < 1."""
        circuit = ov_circuit(self.weights, (found := self._head(head)).W_OV)
        queries = qk_circuit(self.weights, found.W_QK, torch.ones(len(self.words)))
        if n < 1:
            raise ValueError(f"expected n ≥ 1 skip-trigrams, got {n}")
        triples: list[tuple[int, int, int, dict[str, Any]]]
        if text is None:
            sources = torch.arange(1, len(self.words))
            (ov, outs), (qk, destinations) = (top_rows(table, sources, 1) for table in (circuit, queries))
            best = (ov.clamp(min=0) * qk.clamp(min=0))[:, 0].argsort(descending=True, stable=True)[:n]
            positive = [i for i in best.tolist() if min(ov[i], qk[i]) > 0]
            triples = [(int(sources[i]), int(destinations[i]), int(outs[i]), {}) for i in positive]
        else:
            ids, (layer, h) = self.tokens(text), head
            trace, at = self._trace(ids[:, :-1]), occurrences(ids)
            weight = source_weight(trace.patterns[layer][:, h], trace.scales[layer], trace.scales[-1], at)
            exact = ov_circuit(self.net.weights(), self.net.weights().layers[layer][h].W_OV)
            triples = [
                (*t.triple, {"effect_nats": t.total, "places": t.places})
                for t in strongest(effects(exact, weight, at), at, n)
            ]
        rows = [
            {"source": self.words[s], "destination": self.words[d], "out": self.words[o]}
            | {"ov_nats": (circuit.left[o] @ circuit.right[:, s]).item()}
            | {"qk_nats": (queries.left[d] @ queries.right[:, s]).item()}
            | more
            for s, d, o, more in triples
        ]
        measured = [] if text is None else ["effect_nats", "places"]
        return pd.DataFrame(rows, columns=["source", "destination", "out", "ov_nats", "qk_nats", *measured])

    # ---- behavior -------------------------------------------------------------------------------------------------

    def heads(self) -> pd.DataFrame:
        """Return one row per head with its scores on 32 windows of repeated random tokens, and its role.

        ``prefix_matching``, ``previous_token``, ``duplicate_token`` and ``bos`` are mean attention (0..1; docs/
        framework.md §5.2, §3.13) to the token after the earlier occurrence, the previous token, the earlier occurrence
        and BOS, each with a 95 % bootstrap interval (``_low``, ``_high``) and the score of uniform attention
        (``_chance``). ``copying`` is the mean sign of the head's effect on the next token (−1..1; §5.3), and
        ``copying_positivity`` Σ Re λ / Σ |λ| of its OV circuit (§3.5). ``role`` names each behavior whose interval lies
        above half of the attention (a tenth for induction), and above three times chance."""
        tokens, block = self._repeats
        trace, generator = self._trace(tokens), torch.Generator().manual_seed(_SEED)
        even = uniform_attention(tokens.shape[1])
        scores: dict[str, Any] = {
            "prefix_matching": partial(induction.prefix_matching, block=block),
            "previous_token": positional.previous_token,
            "duplicate_token": partial(duplicate_token, block=block),
            "bos": positional.bos,
        }
        columns: dict[str, list[Any]] = {"layer": [p[0] for p in self.places], "head": [p[1] for p in self.places]}
        if not self.places:
            return pd.DataFrame(columns)
        roles: list[list[str]] = [[] for _ in self.places]
        for name, score in scores.items():
            values = torch.cat([by_window(score, pattern) for pattern in trace.patterns])
            chance, found = score(even).item(), mean_intervals(values, independent(values), generator)
            columns |= {name: [i.mean for i in found], f"{name}_low": [i.low for i in found]}
            columns |= {f"{name}_high": [i.high for i in found], f"{name}_chance": [chance] * len(found)}
            least = max(MATCHES if name == "prefix_matching" else MOST, TIMES_CHANCE * chance)
            for role, interval in zip(roles, found, strict=True):
                role += [ROLES.get(name, "attention sink")] if interval.low > least else []
        copied = [induction.copying(o, tokens, self.weights.W_U, block) for o in trace.outputs]
        circuits = [ov_circuit(self.weights, self._head(place).W_OV) for place in self.places]
        columns["copying"] = torch.cat(copied).tolist()
        columns["copying_positivity"] = [positivity(circuit.eigenvalues()) for circuit in circuits]
        columns["role"] = [", ".join(role) for role in roles]
        return pd.DataFrame(columns)

    def induction_pair(self) -> tuple[Place, Place] | None:
        """Return the previous-token head of the first layer, and the induction head: the heads with the highest
        previous-token score and prefix matching on repeated random tokens. None if no head past the first layer has a
        prefix matching of at least 0.1, or if there is a single layer."""
        tokens, block = self._repeats
        patterns = self._trace(tokens).patterns
        later = [induction.prefix_matching(pattern, block) for pattern in patterns[1:]]
        found = scored([scores.tolist() for scores in later], first=1)
        place = max(found, key=lambda p: found[p], default=None)
        if place is None or found[place] < MATCHES:
            return None
        return (0, int(positional.previous_token(patterns[0]).argmax())), place

    def paths(self, text: Text, position: int = -1, target: str | None = None) -> pd.DataFrame:
        """Return what every path through the heads adds to the logit of one token at one ``position`` of ``text``, the
        largest first.

        ``target`` is the token, printed or as text; by default the actual next token or, at the last position, the most
        likely one. ``nats`` are relative to the mean over the vocabulary, and add up to the logit (relative to its
        mean) exactly, with frozen patterns and norm scales (docs/framework.md §2.1). Positions and biases of
        other libraries' weights are rows of their own. ValueError for an unknown token or position."""
        ids = self.tokens(text)[:1]
        if not -ids.shape[1] <= position < ids.shape[1]:
            raise ValueError(f"expected a position from 0 to {ids.shape[1] - 1}, got {position}")
        trace, at = self._trace(ids), position % ids.shape[1]
        wanted = self._target(target, ids, trace, at)
        kept, where = torch.cat([ids[0], torch.tensor([wanted])]).unique(return_inverse=True)
        whole = self.net.weights()
        weights = Weights(whole.W_E[:, kept], (whole.W_U - whole.W_U.mean(0))[kept], whole.layers)
        letters, out = where[None, :-1], int(where[-1])
        rows = []
        for path in all_paths(weights):
            nats = path_logits(weights, path, letters, trace.patterns, trace.scales)[0, at, out].item()
            rows.append({"path": path_name(path), "heads": path, "nats": nats})
        joining = self.net.constants(ids.shape[1]) or []
        for layer, vectors in enumerate(joining):  # paths from positions, and from the biases of each layer
            alone = [vectors * (i == layer) for i, vectors in enumerate(joining)]
            read = constant_reads(weights, alone, trace.patterns, trace.scales)[-1][0, at]
            name = f"biases of L{layer - 1}" if layer else "positions"
            rows += [{"path": name, "heads": (), "nats": (weights.W_U[out] @ read).item()}] if vectors.any() else []
        if self.net.b_U is not None:
            rows.append({"path": "b_U", "heads": (), "nats": (self.net.b_U[wanted] - self.net.b_U.mean()).item()})
        found = pd.DataFrame(rows).sort_values("nats", key=abs, ascending=False, ignore_index=True)
        found.attrs = {"token": self.words[int(ids[0, at])], "target": self.words[wanted]}
        return found

    def history(self) -> pd.DataFrame:
        """Return one row per head and evaluation of training: ``step``, ``tokens_seen``, ``val_loss_nats``, ``layer``,
        ``head``, ``prefix_matching``, ``previous_token`` and ``copying``. ValueError for weights without a log."""
        if not self.log:
            raise ValueError(f"{self.name}: expected the log of its training, found none; load the folder of a run")
        return pd.DataFrame(
            {
                "step": at.step, "tokens_seen": at.tokens_seen, "val_loss_nats": at.val_loss_nats,
                "layer": layer, "head": h, "prefix_matching": at.prefix_matching[layer][h],
                "previous_token": at.previous_token[layer][h], "copying": at.copying[layer][h],
            }
            for at in self.log
            for layer, h in self.places
        )  # fmt: skip

    # ---- private --------------------------------------------------------------------------------------------------

    @cached_property
    def _repeats(self) -> tuple[Int[Tensor, "window pos"], int]:
        known = torch.ones(len(self.words))
        generator = torch.Generator().manual_seed(_SEED)
        return repeated_random(WINDOWS, min(self.net.n_ctx, LONGEST), len(self.words), generator, known)

    @torch.no_grad()
    def _trace(self, tokens: Int[Tensor, "window pos"]) -> Trace:
        return self.net.trace(tokens)

    def _head(self, place: Place) -> Head:
        if place not in self.places:
            known = f"(0, 0) to {self.places[-1]}" if self.places else "a model with layers"
            raise ValueError(f"expected a head (layer, head) from {known}, got {place}")
        return self.weights.layers[place[0]][place[1]]

    def _target(self, target: str | None, ids: Tensor, trace: Trace, at: int) -> int:
        if target is None:
            return int(ids[0, at + 1]) if at + 1 < ids.shape[1] else int(trace.logits[0, at].argmax())
        shown = target if target in self.words else printable(target.encode())
        if shown not in self.words:
            near = ", ".join(map(repr, get_close_matches(shown, self.words, 5, 0.5))) or repr(self.words[1])
            raise ValueError(f"expected one of the model's tokens (a space is ␣), such as {near}, got {target!r}")
        return self.words.index(shown)


@dataclass(frozen=True, repr=False)
class Attention:
    """The attention patterns of all heads on one text."""

    words: Sequence[str]  # printed tokens
    patterns: tuple[Float[Tensor, "one head query key"], ...]  # one per layer

    def __repr__(self) -> str:
        heads = sum(pattern.shape[1] for pattern in self.patterns)
        return f"attention of {heads} heads on {len(self.words)} tokens; .plot(head), .of(head)"

    def of(self, head: Place) -> pd.DataFrame:
        """Return the pattern of a head, query × key, labelled by tokens. Rows add up to 1. ValueError for an unknown
        head."""
        places = [(layer, h) for layer, pattern in enumerate(self.patterns) for h in range(pattern.shape[1])]
        if head not in places:
            raise ValueError(f"expected a head (layer, head) from (0, 0) to {max(places, default=None)}, got {head}")
        layer, h = head
        return pd.DataFrame(self.patterns[layer][0, h].numpy(), index=[*self.words], columns=[*self.words])

    def plot(self, head: Place, ax: Axes | None = None) -> Axes:
        """Draw the pattern of a head, query × key, and return the axes; ``.figure.savefig(path)`` saves the picture."""
        import matplotlib.pyplot as plt
        import seaborn as sns

        table = self.of(head)
        side = max(4, 0.18 * len(table))  # inches; room for a label on each row
        ax = ax or plt.subplots(figsize=(side + 1, side))[1]
        past = pd.DataFrame(torch.ones(table.shape).triu(1).bool().numpy(), table.index, table.columns)
        axes: Axes = sns.heatmap(
            table, mask=past, vmin=0, vmax=1, cmap="Blues", square=True, ax=ax, cbar_kws={"label": "attention"},
            xticklabels=True, yticklabels=True,
        )  # fmt: skip
        axes.set(title=f"head {head[0]}.{head[1]}", xlabel="key", ylabel="query")
        axes.tick_params(axis="y", rotation=0)
        return axes


def folder_of(file: Path) -> Path:
    """Return the folder of the model that a file of weights is part of."""
    return file.parent.parent if file.parent.name == CHECKPOINTS else file.parent


def weights_in(path: Path, step: int | None) -> Path:
    """Return the file of weights in a folder."""
    if not path.is_dir():
        known = sorted(p.name for p in path.parent.iterdir() if p.is_dir()) if path.parent.is_dir() else []
        near = get_close_matches(path.name, known, 5) or known[:5]
        found = f"; {path.parent} has {', '.join(near)}" if near else ""
        raise FileNotFoundError(f"{path}: expected a model's folder or a .safetensors file, found none{found}")
    steps = {int(file.stem): file for file in (path / CHECKPOINTS).glob("*.safetensors") if file.stem.isdecimal()}
    if steps:
        if step is not None and step not in steps:
            raise ValueError(f"{path}: expected a step that has a checkpoint ({_list(steps)}), got {step}")
        return steps[max(steps) if step is None else step]
    if not (path / WEIGHTS).is_file():
        raise FileNotFoundError(f"{path}: expected {CHECKPOINTS}/ or {WEIGHTS} in this folder, found neither")
    return path / WEIGHTS


def _list(steps: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(steps)))
