"""`python -m pipelines.freeze`, and the stages that compare configuration and claims with the frozen file."""

import datetime
import json
from pathlib import Path

import pytest
import yaml

from pathsum.claims import registry
from pathsum.claims.preregistration import require_as_frozen
from pathsum.claims.registry import stated
from pipelines.compose import compose
from pipelines.freeze import freeze
from pipelines.handwritten import read_preregistration
from pipelines.paths import PREREGISTERED, ROOT
from tests.pipelines.configured import check, copy


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    """Return a protocol whose claims are not frozen yet."""
    protocol = {"tuning_seeds": [100, 101], "statements": {"Tuned on": "Seeds 100 and 101."}}
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump({"frozen": None, "protocol": protocol, "claims": {}, "changes": []}))
    return path


def test_freezing_writes_the_codes_claims_and_keeps_the_protocol(draft: Path) -> None:
    freeze(draft, "2025-03-07", again=False)
    found = read_preregistration(draft)
    assert found.frozen == datetime.date(2025, 3, 7)
    assert found.protocol.tuning_seeds == (100, 101)
    assert found.protocol.statements == {"Tuned on": "Seeds 100 and 101."}
    assert list(found.claims) == [c.id for c in registry.claims().values()]
    require_as_frozen(found, stated())


def test_a_frozen_file_is_frozen_again_only_when_asked(draft: Path) -> None:
    freeze(draft, "2025-03-07", again=False)
    written = draft.read_bytes()
    with pytest.raises(ValueError, match="--date.frozen: expected a date from 2021-12-22 to 2100-01-01, as YYYY-MM"):
        freeze(draft, "2025-02-30", again=True)
    with pytest.raises(ValueError, match=r"was frozen on 2025-03-07. List what has changed since under `changes`"):
        freeze(draft, "2025-03-08", again=False)
    assert draft.read_bytes() == written
    freeze(draft, "2025-03-08", again=True)
    assert read_preregistration(draft).frozen == datetime.date(2025, 3, 8)


def test_nothing_is_frozen_without_a_protocol(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected protocol.tuning_seeds and protocol.statements, got none"):
        freeze(tmp_path / "claims.yaml", "2025-03-07", again=False)
    assert not (tmp_path / "claims.yaml").exists()


def test_the_committed_protocol_can_be_read_and_its_claims_are_the_codes(tmp_path: Path) -> None:
    found = read_preregistration(ROOT / PREREGISTERED)
    require_as_frozen(found, stated())
    assert found.protocol.statements
    assert not found.tuned(yaml.safe_load((ROOT / "params.yaml").read_text())["sweep"]["seeds"])


def test_the_check_refuses_to_judge_seeds_that_were_tuned_on(tmp_path: Path) -> None:
    (copy(tmp_path) / "conf" / "claims.yaml").write_text("{protocol: {tuning_seeds: [7, 70, 90]}}")
    compose(tmp_path / "params.yaml", ["sweep.seeds=[2,70,7]"])
    found = check(tmp_path, DVC_EXP_NAME="trial")
    assert found.returncode == 1
    assert "sweep.seeds: expected seeds that were not tuned on, got 7, 70, which conf/claims.yaml lists" in found.stderr
    compose(tmp_path / "params.yaml", ["sweep.seeds=[2,3]"])
    assert check(tmp_path, DVC_EXP_NAME="trial").returncode == 0
    checked = json.loads((tmp_path / "data" / "preregistration.json").read_text())
    assert (checked["frozen"], checked["protocol"]["tuning_seeds"]) == (None, [7, 70, 90])


def test_the_check_refuses_claims_that_are_not_those_of_the_code(tmp_path: Path) -> None:
    path = copy(tmp_path) / "conf" / "claims.yaml"
    path.write_text(path.read_text().replace("threshold: ≥ 0.4", "threshold: ≥ 0.1", 1))
    found = check(tmp_path)
    assert found.returncode == 1
    assert "the claims differ from those frozen on" in found.stderr
    assert "frozen as '≥ 0.1" in found.stderr


def test_the_check_passes_without_the_file(tmp_path: Path) -> None:
    (copy(tmp_path) / "conf" / "claims.yaml").unlink()
    found = check(tmp_path)
    assert (found.returncode, found.stderr) == (0, f"{PREREGISTERED}: no claim is frozen, and the report says so\n")
    assert json.loads((tmp_path / "data" / "preregistration.json").read_text())["frozen"] is None
