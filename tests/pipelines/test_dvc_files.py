"""What a kill or a damaged disk does to the files of DVC is repaired before DVC reads them."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
import yaml
from dvc.utils import dict_sha256

from pathsum.core.manifest import sha256, write_manifest
from pipelines.dvc_files import (
    COPY,
    INTACT,
    LOCK,
    OBJECTS,
    RUN_CACHE,
    RWLOCK,
    drop_damaged,
    mend,
    name_committed,
    name_strangers,
    note_outputs,
    whole,
)

ONE = "schema: '2.0'\nstages:\n  check:\n    cmd: python -m pipelines.check\n"
OUTS = "    outs:\n    - path: data/checked\n      hash: md5\n"
GOOD = ONE + OUTS


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    RUN_CACHE.mkdir(parents=True)
    OBJECTS.mkdir(parents=True)


HARM: list[tuple[Callable[[str], str], str]] = [
    (lambda text: "", "damaged"),
    (lambda text: text[: len(text) // 3], "cut"),
    (lambda text: ONE, "cut"),  # which DVC can read
    (lambda text: "\0" * len(text), "damaged"),
    (lambda text: text.replace("cmd", "cm`"), "damaged"),
    (lambda text: text.replace("outs", "ouds"), "damaged"),
    (lambda text: "<<<<<<< HEAD\n" + text, "damaged"),
    (lambda text: text.replace("hash: md5", "hash: mt5"), "damaged"),  # which agrees with DVC's schema
]


def copied() -> str:
    return gzip.decompress(COPY.read_bytes()).decode()


@pytest.mark.parametrize(("harm", "state"), HARM)
def test_a_damaged_lock_file_is_replaced_by_its_last_whole_copy(
    capsys: pytest.CaptureFixture[str], harm: Callable[[str], str], state: str
) -> None:
    LOCK.write_text(GOOD)
    mend()
    assert copied() == GOOD
    LOCK.write_text(harm(GOOD))
    mend()
    assert LOCK.read_text() == copied() == GOOD
    assert capsys.readouterr().err.startswith(f"pathsum: dvc.lock was {state}; its last whole copy is back")
    mend()
    assert capsys.readouterr().err == ""


def test_a_missing_lock_file_is_replaced_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    mend()
    assert not LOCK.exists()
    LOCK.write_text(GOOD)
    mend()
    LOCK.unlink()
    mend()
    assert LOCK.read_text() == GOOD
    assert capsys.readouterr().err.startswith("pathsum: dvc.lock was missing; its last whole copy is back")


def test_without_a_copy_a_damaged_lock_file_is_set_aside(capsys: pytest.CaptureFixture[str]) -> None:
    LOCK.write_text("")
    mend()
    assert not LOCK.exists()
    assert Path(".dvc/tmp/dvc.lock.damaged").exists()
    assert "Results come from the cache or are made again" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content",
    [b"", bytes(99), gzip.compress(b""), gzip.compress(GOOD.encode())[:-9]],
    ids=["empty", "zeros", "an empty text", "cut off"],  # compressed bytes contain the time, which a name must not
)
def test_a_damaged_copy_is_never_put_back(content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """Not even if dvc.lock has the same content."""
    mend()
    for path in (LOCK, COPY):
        path.write_bytes(content)
    mend()
    assert not LOCK.exists()
    assert "is set aside" in capsys.readouterr().err
    LOCK.write_text(GOOD)
    mend()
    assert (LOCK.read_text(), copied()) == (GOOD, GOOD)


def test_a_link_that_leads_nowhere_is_removed_from_the_results() -> None:
    """DVC would end with an error that it calls unexpected."""
    for name in ("data/checked", "models/L1H2S0", "conf/profile"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).symlink_to("nowhere")
    Path("data/whole").write_text("")
    Path("data/link").symlink_to("whole")
    mend()
    left = [name for name in ("data/checked", "models/L1H2S0", "conf/profile") if Path(name).is_symlink()]
    assert left == ["conf/profile"]  # which no stage makes
    assert Path("data/link").is_symlink()


def test_the_copy_follows_the_lock_file() -> None:
    """Even if it has fewer stages, as after `git checkout`, unless it is only the beginning of the copy."""
    more = GOOD.replace("stages:\n", "stages:\n  first:\n    cmd: a\n")
    for text in (GOOD, GOOD.replace("check", "tokenize"), more, GOOD):
        LOCK.write_text(text)
        mend()
        assert copied() == text
    assert not whole(Path("absent"))


def test_a_folder_without_dvc_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    LOCK.write_text("")
    mend()
    assert [p.name for p in Path().iterdir()] == ["dvc.lock"]


@pytest.mark.parametrize("text", ["", "[]", '{"write": {"a": ', '{"write": {"a": 3}}'])
def test_an_unreadable_file_of_locks_is_emptied(text: str) -> None:
    mend()
    RWLOCK.write_text(text)
    mend()
    assert json.loads(RWLOCK.read_text()) == {}


def test_locks_of_ended_processes_and_of_other_programs_are_dropped() -> None:
    """After a restart of the machine, another program may have the process id of a killed DVC."""
    mend()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    waits = [sys.executable, "-c", "input() or 'dvc'"]
    with subprocess.Popen(waits, stdin=PIPE) as alive, subprocess.Popen(["cat"], stdin=PIPE) as other:
        holders = {"ours": ended.pid, "other": other.pid, "dvc": alive.pid}
        entries = {name: {"pid": pid, "cmd": "repro"} for name, pid in holders.items()}
        RWLOCK.write_text(json.dumps({"write": entries, "read": {name: [one] for name, one in entries.items()}}))
        mend()
        assert json.loads(RWLOCK.read_text()) == {"write": {"dvc": entries["dvc"]}, "read": {"dvc": [entries["dvc"]]}}
        alive.communicate(b"\n")
        other.communicate()


def entry(**about: Any) -> Path:
    """Write an entry of the run cache."""
    paths = [out["path"] for out in about.get("outs", [])]
    key, name = (dict_sha256(one, exclude=["size", "nfiles"]) for one in ({**about, "outs": paths}, about))
    path = RUN_CACHE / key[:2] / key / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({**about, "size": 3}))
    return path


def train(seed: int, md5: str) -> dict[str, Any]:
    """Return the train stage of one model, as dvc.lock and the run cache list it."""
    deps, outs = ({"path": path, "md5": 32 * one, "size": 3} for path, one in (("code", "5"), (f"models/{seed}", md5)))
    return {"cmd": f"train {seed}", "deps": [deps], "outs": [outs]}


def test_results_that_a_stage_never_gave_are_dropped_from_the_lock_file(capsys: pytest.CaptureFixture[str]) -> None:
    """The outputs of 1 and 2 are exchanged, as a wrong merge could do; 3 was made elsewhere."""
    for seed in (0, 1, 2):
        entry(**train(seed, str(seed)))
    entry(**train(0, "e"))
    stages = {str(seed): train(seed, md5) for seed, md5 in ((0, "0"), (1, "2"), (2, "1"), (3, "3"))}
    LOCK.write_text(yaml.safe_dump({"schema": "2.0", "stages": stages}))
    mend()
    assert yaml.safe_load(LOCK.read_text())["stages"] == {name: stages[name] for name in ("0", "3")}
    assert "lists results that 1, 2 did not give" in capsys.readouterr().err
    assert copied() == LOCK.read_text()
    LOCK.write_text(GOOD)
    mend()
    assert LOCK.read_text() == GOOD
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("damaged", ["{", "", "cmd: train 1", "- a", "\0"])
def test_a_stage_with_another_size_than_its_run_had_is_dropped(
    capsys: pytest.CaptureFixture[str], damaged: str
) -> None:
    entry(**train(0, "0"))
    entry(**train(1, "1")).write_text(damaged)  # so that nothing is known about this run
    stages = {str(seed): train(seed, str(seed)) for seed in (0, 1)}
    LOCK.write_text(yaml.safe_dump({"schema": "2.0", "stages": stages}))
    mend()
    assert yaml.safe_load(LOCK.read_text())["stages"] == stages
    stages["0"]["outs"][0]["size"] = 4
    LOCK.write_text(yaml.safe_dump({"schema": "2.0", "stages": stages}))
    mend()
    assert yaml.safe_load(LOCK.read_text())["stages"] == {"1": stages["1"]}
    assert "lists results that 0 did not give" in capsys.readouterr().err


def stored(content: bytes, suffix: str = "") -> Path:
    name = hashlib.md5(content).hexdigest()
    path = OBJECTS / name[:2] / f"{name[2:]}{suffix}"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o444)
    return path


def test_files_that_no_stage_wrote_are_named_before_dvc_removes_them(capsys: pytest.CaptureFixture[str]) -> None:
    listing = stored(json.dumps([{"md5": "0" * 32, "relpath": "inner/a"}]).encode(), ".dir")
    key = listing.parent.name + listing.name
    file = stored(b'{"a": 1}')
    outs = [
        {"path": "models/x", "md5": key, "nfiles": 1},
        {"path": "data/one.json", "md5": file.parent.name + file.name},
    ]
    LOCK.write_text(yaml.safe_dump({"schema": "2.0", "stages": {"train@x": {"cmd": "true", "outs": outs}}}))
    Path("models/x/inner").mkdir(parents=True)
    Path("models/x/inner/a").touch()
    name_strangers({"train@x"})
    assert capsys.readouterr().err == ""
    for name in ("notes.txt", "inner/b"):
        Path("models/x", name).touch()
    name_strangers({"train@y"})
    assert capsys.readouterr().err == ""
    name_strangers({"train@x"})
    said = "no results of a stage; removed when their folders are made again"
    assert capsys.readouterr().err == f"pathsum: models/x/inner/b, models/x/notes.txt: {said}\n"
    listing.chmod(0o644)
    listing.unlink()  # as of an output that is not cached: dvc.lock has the number of its files alone
    name_strangers({"train@x"})
    assert capsys.readouterr().err == f"pathsum: models/x (2 of its files): {said}\n"


def test_a_changed_folder_that_was_committed_is_named_with_the_stage_that_makes_it_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without this, a user deletes the folder, as a message says, and DVC puts the same one back. Models that are no
    longer in params.yaml have no stage."""
    Path("params.yaml").write_text("cells: {a: {}, b: {}}")
    stages = {f"extract@{name}": {"outs": [{"path": f"circuits/{name}", "md5": "0.dir"}]} for name in ("a", "b", "c")}
    LOCK.write_text(yaml.safe_dump({"schema": "2.0", "stages": {**stages, "check": {"cmd": "true"}}}))
    for name in ("a", "b", "c"):
        Path("circuits", name).mkdir(parents=True)
        Path("circuits", name, "heads.txt").write_text("0.5")
        write_manifest(Path("circuits", name), {"heads.txt": sha256(Path("circuits", name, "heads.txt"))}, name)
        name_committed(set())
        assert capsys.readouterr().err == ""
    for name in ("a", "b", "c"):
        Path("circuits", name, "heads.txt").write_text("0.6")
    name_committed({"extract@b"})
    assert capsys.readouterr().err == (
        "pathsum: circuits/a: heads.txt has changed since it was written, and dvc.lock has it so, as after "
        "`dvc commit`; run `dvc repro --force --single-item extract@a` to make it again\n"
    )


def test_empty_folders_and_drafts_of_the_run_cache_are_removed() -> None:
    kept, folder = entry(cmd="python"), RUN_CACHE / "ab" / ("a" * 64)
    folder.mkdir(parents=True)
    other = RUN_CACHE / "cd" / ("c" * 64) / ".x1.tmp"
    other.parent.mkdir(parents=True)
    other.write_text("cmd: pyt")
    mend()
    assert kept.exists()
    assert not folder.exists()
    assert not other.parent.exists()


def test_a_draft_that_a_killed_dvc_left_beside_an_output_is_removed() -> None:
    draft = Path("data") / "tokens" / ".EBPVz_JUgVuuzrrt-Y4oMg.tmp"
    others = [Path("data") / "claims.json", Path("data") / ".mine.tmp"]
    draft.parent.mkdir(parents=True)
    for path in (draft, *others):
        path.write_text("{}")
    mend()
    assert all(path.exists() for path in others)
    assert not draft.exists()


def test_what_does_not_have_its_hash_is_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    mend()
    good = [stored(b"weights"), stored(b"[]", ".dir"), entry(cmd="python")]
    drop_damaged()
    assert capsys.readouterr().err == ""
    other, moved = entry(cmd="other"), RUN_CACHE / "ab" / ("ab" * 32) / "name"
    moved.parent.mkdir(parents=True)
    moved = other.rename(moved.with_name(other.name))  # undamaged, but under the key of another stage
    drop_damaged()
    assert not moved.exists()
    assert "1 are deleted" in capsys.readouterr().err
    bad = [stored(b"tokens"), stored(b"[{}]", ".dir"), entry(cmd="pytho")]
    for path, content in zip(bad, (b"tokenz", b"", b"cmd: `"), strict=True):
        path.chmod(0o644)
        path.write_bytes(content)
        path.chmod(0o444)
    drop_damaged()
    assert [path.exists() for path in (*good, *bad)] == [True] * 3 + [False] * 3
    assert capsys.readouterr().err.startswith("pathsum: damaged files in .dvc/cache: 3 are deleted")


def test_a_file_that_was_intact_is_hashed_again_only_when_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    mend()
    path = stored(b"weights")
    drop_damaged()
    with monkeypatch.context() as patch:
        patch.setattr(hashlib, "file_digest", None)
        drop_damaged()
    time = path.stat().st_mtime_ns
    path.chmod(0o644)
    path.write_bytes(b"weightz")
    os.utime(path, ns=(time, time))
    drop_damaged()
    assert not path.exists()
    path = stored(b"weights").with_name("0" * 30)
    path.write_bytes(b"weights")
    INTACT.write_text("{")
    drop_damaged()
    assert not path.exists()


def test_an_output_that_changed_and_kept_its_time_of_modification_gets_a_new_one() -> None:
    path = Path("data/calibration.parquet")
    path.parent.mkdir()
    path.write_text("abc")
    drop_damaged()
    before = path.stat()
    drop_damaged()
    assert path.stat().st_mtime_ns == before.st_mtime_ns  # nothing has changed
    path.write_text("abd")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    drop_damaged()
    assert path.stat().st_mtime_ns > before.st_mtime_ns


def test_outputs_that_dvc_has_just_hashed_keep_their_times() -> None:
    path = Path("data/calibration.parquet")
    path.parent.mkdir()
    path.write_text("abc")
    before = path.stat()
    note_outputs()
    drop_damaged()
    assert path.stat().st_mtime_ns == before.st_mtime_ns
