"""Each command of the README and of docs/ exists: its targets, modules, flags and extras. Each override and each named
setting composes."""

import importlib.util
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from dvc.cli import DvcParserError
from dvc.cli.parser import get_main_parser
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import ConfigCompositionException
from omegaconf import DictConfig, OmegaConf
from torch.distributed.run import get_args_parser
from wandb.cli.cli import cli

from pipelines import grid
from pipelines.paths import ROOT

README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
COMMANDS = ("make", "python", "torchrun", "dvc", "pip", "pip-audit", "wandb", "ray", "export")
LAUNCHERS = {"joblib", "submitit_local", *(p.stem for p in (ROOT / "conf" / "hydra" / "launcher").glob("*.yaml"))}


def pieces(page: Path) -> Iterator[tuple[str, str]]:
    """Return the Python blocks ("python") and shell lines ("bash") of a page, in its order."""
    for language, block, sentence in re.findall(
        r"```(\w*)\n(.*?)```|`([^`]+)`", page.read_text(encoding="utf-8"), re.S
    ):
        if language == "python":
            yield language, block
        said = " ".join(sentence.split())
        spoken = [said] if said.startswith(tuple(f"{c} " for c in COMMANDS)) else []
        for line in block.splitlines() if language == "bash" else spoken:
            if command := " ".join(line.split()).partition(" #")[0]:
                yield "bash", command


def inline() -> list[str]:
    """Return every piece of code in a sentence."""
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", TEXT, flags=re.S))]


def commands(line: str) -> Iterator[list[str]]:
    """Return the words of each command in a shell line, without comments and variables."""
    words = shlex.split(line, comments=True)
    while words:
        end = words.index("&&") if "&&" in words else len(words)
        command, words = words[:end], words[end + 1 :]
        while re.match(r"[A-Z_]+=", command[0]):
            command = command[1:]
        yield [word.rstrip(";") for word in command]


LINES = list(dict.fromkeys(line for page in PAGES for language, line in pieces(page) if language == "bash"))


def test_the_lines_are_found() -> None:
    known = {command[0] for line in LINES for command in commands(line)}
    assert known >= set(COMMANDS) - {"torchrun"}
    assert len(LINES) > 20


def check_make(words: list[str]) -> None:
    """Make knows the target, and the target reads the variables."""
    subprocess.run(["make", "--dry-run", *words], cwd=ROOT, check=True, capture_output=True)


def check_python(words: list[str]) -> None:
    if words[0] == "-c":
        compile(words[1], "README.md", "exec")
        return
    assert words[0] == "-m", words
    assert importlib.util.find_spec(words[1]) is not None, words[1]
    if words[1] in ("pipelines.compose", "pipelines.train"):
        check_overrides([word for word in words[2:] if word != "--multirun"])


def check_overrides(overrides: list[str]) -> None:
    """Check that the first choice of each sweep composes. Of launchers, which may not be installed, only the name is
    checked."""
    parsed = OverridesParser.create().parse_overrides(overrides)
    chosen = [
        f"{o.get_key_element()}={next(o.sweep_string_iterator())}" if o.is_sweep_override() else text
        for o, text in zip(parsed, overrides, strict=True)
    ]
    launchers = [text.partition("=")[2] for text in chosen if text.startswith("hydra/launcher=")]
    assert set(launchers) <= LAUNCHERS
    with initialize_config_dir(str(ROOT / "conf"), version_base=None):
        values = compose("config", [text for text in chosen if not text.startswith("hydra")])
        assert grid.cells({str(k): v for k, v in OmegaConf.to_container(values).items()})  # type: ignore[union-attr]


def check_torchrun(words: list[str]) -> None:
    found = get_args_parser().parse_args(words)
    assert found.module
    check_python(["-m", found.training_script, *found.training_script_args])


def check_dvc(words: list[str]) -> None:
    found = get_main_parser().parse_args(words)  # exits where a command or flag is unknown
    if changed := getattr(found, "set_param", None):
        check_overrides(changed)


def check_pip(words: list[str]) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert words[0] == "install"
    named = [match[1] for word in words if (match := re.fullmatch(r"pathsum\[(\w+)\]", word))]
    assert named or words[1:] in (["pip-audit"], ["transformer_lens<4"])
    assert set(named) <= set(extras)
    assert all(Path(ROOT / words[i + 1]).is_file() for i, word in enumerate(words) if word == "-c")


def check_pip_audit(words: list[str]) -> None:
    assert (ROOT / words[words.index("-r") + 1]).is_file()


def check_ray(words: list[str]) -> None:
    """Ray may not be installed: only the subcommand is checked."""
    assert words[0] == "start"


def check_export(words: list[str]) -> None:
    assert all(re.fullmatch(r"[A-Z_]+=\S+", word) for word in words)


def check_wandb(words: list[str]) -> None:
    assert words[0] in cli.commands


@pytest.mark.parametrize("line", LINES)
def test_a_command_of_the_documents_can_be_typed(line: str) -> None:
    for command, *words in commands(line):
        globals()[f"check_{command.replace('-', '_')}"](words)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ("make reprod", subprocess.CalledProcessError),
        ("make repro JOSB=2", subprocess.CalledProcessError),
        ("python -m pipelines.nothing", AssertionError),
        ("dvc repro --frce", DvcParserError),
        ("python -m pipelines.train model.n_hedas=2", ConfigCompositionException),
        ("dvc exp run -S 'sweep.n_headz=[2]'", ConfigCompositionException),
        ("pip install 'pathsum[no]'", AssertionError),
    ],
)
def test_a_command_that_does_not_exist_is_noticed(wrong: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        test_a_command_of_the_documents_can_be_typed(wrong)


def test_a_variable_is_one_word_of_the_shell_whatever_its_quotes() -> None:
    for target, variable in (("repro", "JOBS"), ("compare", "BASE"), ("corpora", "TEXT")):
        odd = "it's [1] $2, ~"
        shown = ["make", "--no-print-directory", "--dry-run", target, f"{variable}={odd}"]
        printed = subprocess.run(shown, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        assert any(word.endswith(odd) for word in shlex.split(printed.splitlines()[-1]))


def settings() -> list[str]:
    """Return every setting of conf/ that a sentence names, such as ``train.tokens``."""
    groups = "|".join(p.name for p in (ROOT / "conf").iterdir() if p.is_dir() and p.name not in ("hydra", "profile"))
    return sorted({m[1] for text in inline() if (m := re.match(rf"((?:{groups})(?:\.[a-z]\w*)+)(?:[:=]|$)", text))})


def test_every_setting_that_a_sentence_names_exists() -> None:
    with initialize_config_dir(str(ROOT / "conf"), version_base=None):
        values = compose("config", ["corpus=text"])
    modules = {name for name in settings() if (ROOT / "src" / "pathsum" / f"{name.replace('.', '/')}.py").is_file()}
    missing = sorted(set(settings()) - modules - keys(values) - {"model.safetensors", "tokenizer.json"})
    assert len(settings()) > 3, "the settings are found"
    assert missing == []


def keys(values: DictConfig, prefix: str = "") -> set[str]:
    """Return the dotted names of all settings."""
    found = set()
    for name in values:
        found.add(f"{prefix}{name}")
        child = values._get_node(name)
        if isinstance(child, DictConfig):
            found |= keys(child, f"{prefix}{name}.")
    return found


def test_every_file_of_conf_that_a_sentence_names_exists() -> None:
    named = {m[0] for text in inline() if (m := re.match(r"conf/[\w/]+\.yaml", text))}
    assert "conf/config.yaml" in named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
