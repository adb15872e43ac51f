"""`make params`: compose conf/ into params.yaml, as `dvc exp run` does."""

from __future__ import annotations

import re
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml
from antlr4 import CommonTokenStream, InputStream, ParseTreeWalker
from dvc.utils.hydra import compose_and_dump
from hydra.errors import HydraException, OverrideParseException
from hydra.grammar.gen.OverrideLexer import OverrideLexer
from hydra.grammar.gen.OverrideParser import OverrideParser
from hydra.grammar.gen.OverrideParserListener import OverrideParserListener
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pathsum.complaints import unknown
from pathsum.config import ConfigError, changeable
from pathsum.core.storage import write_whole
from pipelines.misread import as_compared, misread
from pipelines.paths import NOT_UTF_8, PARAMS, ROOT, params, read_yaml, show_help, stage

COMPOSED = ("cells", "synthetic_models")  # from other sections

BY_NAME = re.compile(  # changes of models by their name or number of layers, or of a kind of synthetic corpus
    r"(sweep\.(?:by_layers|overrides|controls)|calibrate\.synthetic_models)\.([^.]+)(?:\.([^.]+)(?:\.([^.]+))?)?"
)
COMPOSED_KEY = "{}: is composed from other settings; change model, train, sweep.overrides or calibrate"
NO_DEFAULTS = "{}: expected the list `defaults`, got none; put it back"


def compose(output: Path, overrides: list[str]) -> None:
    """Compose conf/ with the Hydra ``overrides`` and write the result to ``output``.

    Raises ValueError, with all that is wrong, if they do not compose or ``output`` is a folder.
    """
    for override in overrides:
        key = override.lstrip("+~").partition("=")[0]
        if override.startswith("~") and "." not in key:
            raise ValueError(f"{override}: nothing that every run reads can be removed; expected KEY=VALUE")
        if "." in key and key.partition(".")[0] in COMPOSED:
            raise ValueError(COMPOSED_KEY.format(key))
        if key.startswith("hydra"):
            raise ValueError(f"{override}: only pipelines.train reads Hydra's own settings; expected one of conf/")
    if output.is_dir():
        raise ValueError(f"{output}: expected a file to write, got a folder; remove it")
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "params.yaml"
        with composing(overrides):
            compose_and_dump(str(draft), str(ROOT / "conf"), None, "config", str(ROOT / "pipelines"), overrides)
        if not read_yaml(draft) or "defaults" not in (read_yaml(ROOT / "conf" / "config.yaml") or ()):
            raise ValueError(NO_DEFAULTS.format("conf/config.yaml"))
        write_whole(output, draft.read_bytes())


CAUGHT = (HydraException, OmegaConfBaseException, yaml.YAMLError, ValueError, OSError, RecursionError, AssertionError)


@contextmanager
def composing(overrides: Sequence[str]) -> Iterator[None]:
    """Turn the errors of Hydra and OmegaConf in the block into a ValueError that says what is wrong with ``overrides``
    or conf/."""
    _refuse_what_would_be_ignored(overrides)
    if complaints := list(misread(ROOT / "conf")):
        raise ValueError("\n".join(complaints))
    try:
        yield
    except CAUGHT as error:
        if isinstance(error, ChildProcessError) or getattr(error, "errno", None):  # a job that failed, or the disk
            raise
        raised_in = traceback.extract_tb(error.__traceback__)[-1].filename
        if isinstance(error, AssertionError) and not re.search("hydra|omegaconf", raised_in):
            raise
        for cause in _causes(error):
            if isinstance(cause, ConfigError):
                raise cause from error
        if isinstance(error, OverrideParseException):
            raise ValueError(_unreadable_override(error.override)) from error
        if named := re.search("Could not find '([^']+)/([^'/]+)'", str(error)):
            raise ValueError(_unknown_file(*named.groups())) from error
        if named := re.match("Could not override '([^']*)'", str(error)):
            raise ValueError(_unknown_key(named[1]) if named[1] else _unreadable_override("=…")) from error
        if named := re.match("In '([^']*)': Could not override '(?:profile/)?([^'@]*)", str(error)):
            raise ValueError(
                f"conf/{named[1]}.yaml: expected `override /FOLDER: NAME` in `defaults`, with the slash and a folder "
                f"that conf/config.yaml lists before the profile, got `override {named[2]}`; correct it"
            ) from error
        given = f" with {' '.join(overrides)}" if overrides else ""
        raise ValueError(f"conf/ cannot be composed{given}: {_said(error)}") from error


def _refuse_what_would_be_ignored(overrides: Sequence[str]) -> None:
    """Raise ValueError if an override gives a list or settings to a folder of conf/, of which one file is read, or if
    braces hold ``???`` or nothing, which OmegaConf would ignore, or a key twice, of which Hydra would keep the last.
    Options that name another file than conf/config.yaml and bytes that are not UTF-8 are refused, too."""
    for override in overrides:
        if NOT_UTF_8.search(override):
            raise ValueError(f"{override!a}: expected UTF-8, got other bytes; in a path, * stands for any characters")
        if re.match("--config-(name|path)|-c[np]", override):
            raise ValueError(f"{override}: expected no such option, because this command reads conf/config.yaml")
        if "{" in override:
            ParseTreeWalker.DEFAULT.walk(Braces(override), _parsed(override))
        if re.search(r"\{.*\?\?\?", override):
            raise ValueError(f"{override}: expected values in braces, got ???; write each of them")
        key, _, value = override.lstrip("+").partition("=")
        if value.strip()[:1] in ("[", "{") and key.isidentifier() and (ROOT / "conf" / key).is_dir():
            raise ValueError(
                f"{override}: expected the name of one file in conf/{key}/, got a list or settings; single settings "
                f"have dots, as in {key}.KEY=VALUE"
            )


class Braces(OverrideParserListener):
    """Raises ValueError for braces that hold a key twice, or nothing, although settings are merged."""

    def __init__(self, override: str) -> None:
        self.override = override

    def enterDictContainer(self, container: OverrideParser.DictContainerContext) -> None:
        keys = [as_compared(pair.getChild(0).getText().strip()) for pair in container.dictKeyValuePair()]
        if twice := [key for key, times in Counter(keys).items() if times > 1]:
            raise ValueError(f"{self.override}: expected different keys in braces, got {twice[0]} more than once")
        if not keys and not self.override.lstrip("+~").startswith(("hydra", *COMPOSED)):
            raise ValueError(
                f"{self.override}: settings are merged, so {{}} changes nothing; expected single settings, or a "
                "control to leave out: sweep.controls.NAME=null"
            )


def _parsed(override: str) -> OverrideParser.OverrideContext:
    """Return the parse tree of an override. What cannot be parsed is left out; Hydra refuses it later."""
    lexer = OverrideLexer(InputStream(override))
    parser = OverrideParser(CommonTokenStream(lexer))
    lexer.removeErrorListeners()
    parser.removeErrorListeners()
    return parser.override()


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _said(error: Exception) -> str:
    """Return the message of ``error`` without the internals of the libraries, or, where it does not say what to do, a
    message that does."""
    text = str(error) or "Hydra refuses one of these settings; see its documentation"
    if "Error merging override" in text and (key := getattr(error.__cause__, "full_key", None)) and "=[" in text:
        return f"{key}: expected settings by name, got a list"
    if "Cannot merge DictConfig with ListConfig" in str(error.__cause__) and (
        named := re.search(r"override ([^={]+)=", text)
    ):
        return f"{named[1]}: expected a list in brackets, such as [1, 2], got settings by name"
    if "Incompatible key type 'NoneType'" in str(error.__cause__) and (named := re.search(r"override ([^={]+)=", text)):
        return f"{named[1]}: expected names as keys, got null"
    if "in defaults : bool" in text:
        return (
            "YAML reads a bare off, on, yes or no as true or false; expected the name of a file in every line of "
            "`defaults`, for example `tracking: none`"
        )
    if str(ROOT / "conf") not in text and (unreadable := list(_unreadable())):
        return "; ".join(unreadable)
    if "Cannot find primary config" in text:
        return "expected the file conf/config.yaml, found none; put it back"
    if isinstance(error, RecursionError):
        return "expected settings that end, got some that contain themselves or are nested too deeply"
    if re.search("requires --multirun|Ambiguous value", text):
        return (
            "ranges, choices and values separated by commas are sweeps, which only `python -m pipelines.train "
            "--multirun` reads; write a list as [0, 1, 2], and text with commas as KEY='\"a,b\"'"
        )
    if "Config group override must be" in text:
        return "expected KEY=VALUE, with the name of a file in conf/KEY/ for a whole section; single settings have dots"
    if re.search("Interpolation key 'sweep.seeds|sweep.seeds.* container", text):  # ``seed`` interpolates sweep.seeds
        return "sweep.seeds: expected a list of at least one seed, such as [2, 3, 4]"
    if named := re.match(r"Interpolation key '(\w+)' not found", text):
        return f"{named[1]}: expected settings by name"
    if isinstance(error, yaml.YAMLError):
        return f"{text}; correct the file"
    if "Error merging override" in text and error.__cause__:
        text = f"{text}: {error.__cause__}"
    text = re.sub(r"^\w+ raised while resolving interpolation: ", "", text)
    text = re.split(r"\n\s*(?:full_key:|Config search path|See https)", text)[0].strip()
    return f"{text}; it needs `pip install 'pathsum[launchers]'`" if "submitit" in text else text


def _unreadable_override(override: str) -> str:
    """Return the complaint about an override that Hydra cannot parse."""
    layers = re.match(r"[+~]*sweep\.by_layers\.([^.=]*)", override)
    if layers and not re.fullmatch("0|[1-9][0-9]*", layers[1]):
        return (
            f"{override}: expected a number of layers without sign or leading zeros, as in "
            f"++sweep.by_layers.2.train.tokens=9000000, got {layers[1]!r}"
        )
    return (
        f"{override or 'empty override'}: expected KEY=VALUE, with letters from a to z, digits, _ and dots in KEY, "
        "special characters of VALUE in quotation marks, and brackets and quotes closed"
    )


def _unknown_file(folder: str, name: str) -> str:
    """Return the complaint about a file of conf/ that is not there, with the nearest one."""
    folders = [path.name for path in (ROOT / "conf").iterdir() if path.is_dir()]
    files = [path.stem for path in (ROOT / "conf" / folder).glob("*.yaml")]
    if name in files:
        return f"conf/{folder}/{name}.yaml: expected a file, got a folder or a link to nowhere; put the file back"
    if files:
        hint = unknown(name, files, "file")
    elif folder in folders:
        hint = f"conf/{folder}/ has no files; put them back"
    else:
        hint = unknown(folder, folders, "folder")
    if folder.startswith("hydra/"):
        return f"{folder}={name}: no such choice; Hydra and its plugins, and conf/{folder}/ here, define them"
    return f"conf/{folder}/{name}.yaml: named by `defaults` or an override, but not there; {hint}"


def _unknown_key(path: str) -> str:
    """Return the complaint about an override of a key that does not exist, with the nearest key of its section."""
    if path.startswith(("cells.", "synthetic_models.")):
        return COMPOSED_KEY.format(path)
    if path.startswith("hydra."):
        return f"{path}: Hydra has no such setting"
    if "/" in path:
        return f"{path}: no such folder in conf/; single settings have dots: {path.replace('/', '.')}=…"
    known, above = params() if PARAMS.is_file() else {}, ""
    for key in path.split("."):
        if not isinstance(known, dict):
            return f"{path}: {above.rstrip('.')} is a single value, without settings of its own"
        if not known:
            break
        known = {str(name): values for name, values in known.items()}
        if key not in known:
            groups = [] if above else [folder.name for folder in (ROOT / "conf").iterdir() if folder.is_dir()]
            adds = f" (++{path}=… adds one)" if _can_be_added(path) else ""
            inner = [
                f"{section}.{key}" for section in known if isinstance(known[section], dict) and key in known[section]
            ]
            if inner and not above:
                return f"{key}: no such setting; did you mean {inner[0]}?"
            other = "; other kinds of corpora have other settings, chosen by corpus=NAME" if above == "corpus." else ""
            return above + unknown(key, {*known, *groups}) + adds + other
        known, above = known[key], f"{above}{key}."
    if path.startswith("corpus.") and known != {}:  # params.yaml has the setting, but these overrides name another file
        return (
            f"{path}: expected a setting of the file of conf/corpus/ that is chosen here, got one of another file; "
            "leave it out, or choose that file by corpus=NAME"
        )
    if isinstance(known, dict) and known:
        return f"{path}: expected one setting of it at a time; write ++{path}.KEY=VALUE for each"
    return f"{path}: empty, or no such setting; ++{path}=… adds it where the configuration allows it"


def _can_be_added(path: str) -> bool:
    """Return whether the configuration allows ``path`` as a new entry of ``BY_NAME``, or as a section or a setting of
    one."""
    if not (named := BY_NAME.fullmatch(path)):
        return False
    entries, name, section, key = named.groups()
    if entries == "sweep.by_layers" and not name.isdecimal():
        return False
    known = changeable(entries)
    return section is None or (section in known and (key is None or key in known[section]))


def _unreadable() -> Iterator[str]:
    """Yield a complaint for each file of conf/ that cannot be read. The errors of Hydra do not always name it."""
    for path in sorted((ROOT / "conf").rglob("[!.]*.yaml")):
        try:
            settings = OmegaConf.load(path)
            if not isinstance(settings, DictConfig):
                yield f"{path}: expected settings by name, got a list; correct it"
            elif path == ROOT / "conf" / "config.yaml" and "defaults" not in settings:
                yield NO_DEFAULTS.format(path)
        except UnicodeDecodeError:
            yield f"{path}: expected UTF-8, got other bytes; save it as UTF-8"
        except RecursionError:
            yield f"{path}: expected settings, got brackets that are nested too deeply; correct it"
        except (OSError, ValueError, yaml.YAMLError, OmegaConfBaseException) as error:
            yield f"{path}: expected settings by name, got something else ({error}); correct it"


if __name__ == "__main__":
    with stage(threads=0):
        show_help(__doc__)
        if not Path("conf").is_dir():
            raise ValueError(f"expected conf/ in {Path.cwd()}, found none; run this in the root of the repository")
        compose(PARAMS, sys.argv[1:])
