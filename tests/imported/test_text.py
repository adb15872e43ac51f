"""Text and words of other tokenizers, with id 0 for BOS (beginning of sequence)."""

import json
import sys
from pathlib import Path

import huggingface_hub
import pytest
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import BPE, Model, Unigram, WordLevel, WordPiece
from tokenizers.pre_tokenizers import ByteLevel, Metaspace, Split, Whitespace, WhitespaceSplit
from tokenizers.trainers import BpeTrainer

from pathsum.config import TokenizerConfig
from pathsum.imported.text import bos_id, codec_of, read_tokenizer, require_known, words
from pathsum.text.hub import local_or_hub
from pathsum.text.tokenizer import train_tokenizer, vocabulary

TEXT = "the café and the tea, the cup and the spoon\n" * 7


def byte_level(bos: str) -> Tokenizer:
    """Return a tokenizer like that of GPT-2, with the special token last."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    trainer = BpeTrainer(vocab_size=277, initial_alphabet=sorted(ByteLevel.alphabet()), show_progress=False)
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.add_special_tokens([bos])
    return tokenizer


def test_ids_0_and_bos_are_exchanged_in_tokens_and_words_alike() -> None:
    tokenizer = byte_level("<|endoftext|>")
    bos, d_vocab = bos_id(tokenizer, ""), tokenizer.get_vocab_size() + 3
    shown, (codec, ids) = words(tokenizer, d_vocab, bos), codec_of(tokenizer, d_vocab, bos)
    assert shown[0] == codec.words[0] == "<|endoftext|>"
    assert shown[bos] == codec.words[bos] == tokenizer.id_to_token(0) == "!"
    assert shown[-3:] == [f"[{i}]" for i in range(d_vocab - 3, d_vocab)]
    assert len(codec.words) == d_vocab - 3  # ids that the tokenizer lacks are left out
    (tokens,) = codec.encode([TEXT + "!"])
    assert tokens[-1] == bos
    assert ids[tokens].tolist() == tokenizer.encode(TEXT + "!").ids
    assert "".join(codec.words[i] for i in tokens) == (TEXT + "!").replace(" ", "␣").replace("\n", "↵")
    own = train_tokenizer([TEXT], TokenizerConfig(d_vocab=270, train_bytes=1000))  # of this project
    assert (bos_id(own, ""), words(own, 270, 0)) == (0, vocabulary(own))
    assert codec_of(own, 270, 0)[0].numbers is None


CZECH = ["čas", "Čas", "být", "Ġgant"]  # their letters are also names of bytes, except ý


@pytest.mark.parametrize(
    ("model", "steps", "shown"),
    [
        (WordLevel(dict(zip(CZECH, range(4), strict=True))), WhitespaceSplit(), CZECH),
        (WordPiece({"čas": 0, "##ás": 1}), Whitespace(), ["čas", "##ás"]),
        (BPE({"č": 0, "a</w>": 1, "č</w>": 2}, [], end_of_word_suffix="</w>"), Whitespace(), ["č", "a</w>", "č</w>"]),
        (BPE({" ": 0, "č": 1, "\n": 2}, []), Split("", "isolated"), ["␣", "č", "↵"]),
        (Unigram([("<unk>", 0.0), ("▁čas", -1.0), ("č", -2.0)], 0, False), Metaspace(), ["<unk>", "␣čas", "č"]),
        (Unigram([("_čas", -1.0), ("▁", -2.0)], 0, False), Metaspace(replacement="_"), ["␣čas", "▁"]),
        (BPE({"Äį": 0, "Ġas": 1, "Ä": 2, "ä": 3}, []), ByteLevel(), ["č", "␣as", "\\xc4", "\\xe4"]),
        (
            WordLevel({"Äįas": 0, "<｜end｜>": 1}),
            pre_tokenizers.Sequence([WhitespaceSplit(), ByteLevel(use_regex=False)]),
            ["čas", "<｜end｜>"],
        ),
        (
            BPE({"<0xC4>": 0, "<0x0A>": 1, "<0x41>": 2, "A": 3, "č": 4}, [], byte_fallback=True),
            None,
            ["\\xc4", "↵", "<0x41>", "A", "č"],
        ),
        (BPE({"<0xC4>": 0}, []), None, ["<0xC4>"]),
    ],
)
def test_tokens_are_printed_as_the_text_that_they_stand_for(model: Model, steps: object, shown: list[str]) -> None:
    tokenizer = Tokenizer(model)
    if steps is not None:
        tokenizer.pre_tokenizer = steps
    size = tokenizer.get_vocab_size()
    assert words(tokenizer, size, 0) == shown
    tokenizer.add_tokens(["Ďas", "ď▁<0x41>"])  # literal text in every tokenizer
    assert words(tokenizer, size + 3, 0) == [*shown, "Ďas", "ď▁<0x41>", f"[{size + 2}]"]


def test_a_normalizer_may_be_what_makes_bytes() -> None:
    tokenizer = Tokenizer(BPE({"Äį": 0}, []))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.ByteLevel()])
    assert words(tokenizer, 1, 0) == ["č"]


def test_other_kinds_of_tokenizers_are_read_without_truncation_and_dropout(tmp_path: Path) -> None:
    tokenizer = Tokenizer(WordLevel({"<unk>": 0, "<s>": 1, "a": 2, "▁b": 3}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=50)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    again = read_tokenizer(tmp_path / "tokenizer.json")
    with pytest.warns(UserWarning, match="knows 80% of the characters"):
        require_known(again, "a a b a a")
    assert codec_of(again, 4, bos_id(again, ""))[0].encode(["a a b a a"]) == [[2, 2, 1, 2, 2]]
    assert words(again, 4, 1) == ["<s>", "<unk>", "a", "␣b"]
    Tokenizer(BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")], dropout=0.5)).save(str(tmp_path / "tokenizer.json"))
    assert read_tokenizer(tmp_path / "tokenizer.json").encode("ab" * 50).ids == [2] * 50


def test_a_tokenizer_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    tokenizer = byte_level("<start>")
    with pytest.raises(ValueError, match=r"BOS: expected one token of .* in TOKENIZER, got none; give BOS='<name>'"):
        bos_id(tokenizer, "")
    assert tokenizer.id_to_token(bos_id(tokenizer, "<start>")) == "<start>"
    tokenizer.add_special_tokens(["<s>", "<bos>"])
    with pytest.raises(ValueError, match="got <bos> and <s>"):
        bos_id(tokenizer, "")
    with pytest.raises(ValueError, match="TOKENIZER: expected at most the 100 ids of the model, got 279"):
        words(tokenizer, 100, 0)
    (tmp_path / "odd.json").write_text(json.dumps({"model": 3}))
    for name in ("none.json", "odd.json"):
        with pytest.raises(ValueError, match=f"TOKENIZER: expected a JSON file of the tokenizers .* got .*{name}"):
            read_tokenizer(tmp_path / name)
    lacking = Tokenizer(WordLevel({"<s>": 0, "a": 1}, unk_token="<unk>"))
    with pytest.raises(ValueError, match="expected text that the tokenizer can encode, got: WordLevel error"):
        require_known(lacking, "a b")


def test_text_that_is_mostly_unknown_is_refused() -> None:
    tokenizer = Tokenizer(WordLevel({"<s>": 0, "<unk>": 1, "a": 2}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    with pytest.raises(ValueError, match="TOKENIZER: expected tokens for half of the characters of TEXT, got 0%"):
        require_known(tokenizer, "a " * 100 + "b " * 100_000)  # unknown later on


@pytest.mark.parametrize(
    ("model", "steps", "content"),
    [
        (Unigram([("<unk>", 0.0), ("▁", -3.0), ("a", -3.0)], 0, False), Metaspace(), "ččč žž"),
        (Unigram([("a", -3.0), ("▁", -3.0), ("?", 0.0)], 2, False), Metaspace(), "č žž"),
        (WordPiece({"[UNK]": 0, "a": 1}), Whitespace(), "b cc"),
        (WordLevel({"?": 0, "a": 1}, unk_token="?"), Whitespace(), "b cc"),
        (BPE({"a": 0, "b": 1}, []), Whitespace(), "c dd"),  # drops what it does not know
        (BPE({"a": 0, "b": 1}, [], unk_token="b"), Whitespace(), "c dd"),
    ],
)
def test_the_unknown_token_is_found_in_every_kind_of_model(model: Model, steps: object, content: str) -> None:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = steps
    tokenizer.add_special_tokens(["<s>"])
    with pytest.raises(ValueError, match="of the characters of TEXT, got 0%"):
        require_known(tokenizer, content)
    require_known(tokenizer, "a a")


def test_the_ids_of_a_tokenizer_are_those_it_has() -> None:
    tokenizer = Tokenizer(WordLevel({"a": 2, "<s>": 5, "b": 7}))
    codec, ids = codec_of(tokenizer, 9, 5)
    assert (codec.words, ids.tolist()) == (["<s>", "a", "b"], [5, 2, 7])
    assert codec.encode(["b"]) == [[2]]
    assert words(tokenizer, 9, 5) == ["<s>", "[1]", "a", "[3]", "[4]", "[0]", "[6]", "b", "[8]"]
    assert codec_of(Tokenizer(WordLevel({"a": 0, "<s>": 5, "b": 7})), 9, 5)[1].tolist() == [5, 0, 7]


def test_only_what_looks_like_a_hub_id_is_looked_for_on_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for named in (str(tmp_path), "model.safetensors", "folder/model.safetensors", "./a/b", "../name", "a/b/c", "one"):
        assert local_or_hub(named, "x") == Path(named)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ValueError, match="owner/name-1.5: expected a local file, or a hub repository with x, got imp"):
        local_or_hub("owner/name-1.5", "x")


@pytest.mark.parametrize("unreachable", [OSError("no network"), None])
def test_a_hub_that_does_not_answer_is_said_so(monkeypatch: pytest.MonkeyPatch, unreachable: OSError | None) -> None:
    """Without an answer, only files of an earlier download are looked for: the library would try for 25 s."""
    asked = []

    def download(*_: object, local_files_only: bool, **__: object) -> str:
        asked.append(local_files_only)
        raise huggingface_hub.errors.LocalEntryNotFoundError("no entry")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    monkeypatch.setattr("pathsum.text.hub.connection_error", lambda: unreachable)
    with pytest.raises(ValueError, match="hub repository with model.safetensors, got no entry"):
        local_or_hub("owner/name", "model.safetensors")
    assert asked == [unreachable is not None]


def test_a_file_downloaded_before_needs_no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stored = tmp_path / "models--owner--name" / "snapshots" / "0123abc"
    stored.mkdir(parents=True)
    (stored / "config.json").write_text("{}")
    (tmp_path / "models--owner--name" / "refs").mkdir()
    (tmp_path / "models--owner--name" / "refs" / "main").write_text("0123abc")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("pathsum.text.hub.connection_error", lambda: OSError("no network"))
    assert local_or_hub("owner/name", "config.json") == stored / "config.json"
