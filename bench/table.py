"""Write bench/README.md and its figures from the stored measurements: `python -m bench.table`"""

from __future__ import annotations

import json
import re
from pathlib import Path

from bench.exponents import growth
from bench.findings import findings
from bench.markdown import NOT_MEASURED, table
from bench.memory import needs
from bench.ratios import Results, draw_ratios, installing, ratios
from bench.shapes import DEFAULT, LARGER
from bench.step_profile import MODEL
from experiments.summary import dilution, onset_law, phase_change

HERE = Path(__file__).parent
EXPERIMENTS = HERE.parent / "experiments"


def by_hand(results: Results) -> str:
    """Return a sentence on what hand-written kernels gain over ``torch.compile``."""
    rows = [results.get(f"train_step.{shape.name}.compiled") for shape in (DEFAULT, LARGER)]
    if not rows[0] or not rows[1]:
        return "`torch.compile` was not measured, because it found no working C++ compiler."
    return (
        f"Against `torch.compile`, the kernels by hand and the two halves of a batch in two threads make the step "
        f"{rows[0]['ratio']} times as fast at batch {DEFAULT.batch} and {rows[1]['ratio']} times at batch "
        f"{LARGER.batch}."
    )


def step_profile() -> str:
    """Return a table of the parts of a training step: the share of time, and the largest gain if the part took none."""
    if not (path := HERE / "step_profile.json").exists():
        return NOT_MEASURED.format("python -m bench.step_profile")
    found = json.loads(path.read_text())
    rows = [
        (name, "" if name == MODEL else f"{1 / (1 - share):.2f}", f"{share:.1%}")
        for name, share in found["shares"].items()
    ]
    said = (
        f"Where the time of a step goes ({DEFAULT.title}; {found['machine']}): if a part took no time, the step would "
        "be faster by at most the factor beside it, and its share of the peak would grow by the same factor."
    )
    return f"{said}\n\n{table(('part of the step', 'gain at most (factor)', 'share of time'), rows)}"


def on_a_gpu(results: Results) -> str:
    """Return a table of the training steps on a GPU and a sentence on the share of its peak that they reach."""
    if not (found := {name: row for name, row in results.items() if name.startswith("gpu_step.")}):
        return NOT_MEASURED.format("python -m bench.train_step --only cuda")
    shares = [
        f"{row['ratio']:.0%} at the sizes of the profile `{name.split('.')[1]}`"
        for name, row in found.items()
        if name.endswith("device_peak")
    ]
    said = f"Measured on: {machines(found)}. Shares of the peak of the GPU that our step reaches: {', '.join(shares)}."
    return f"{said}\n\n{ratios(found, 'gpu_step.', '')}"


def machines(rows: Results) -> str:
    """Return the names of all machines on which ``rows`` were measured."""
    return "; ".join(sorted({found["machine"] for found in rows.values()}))


def main() -> None:
    results = json.loads((HERE / "results.json").read_text())
    page = (HERE / "README.template.md").read_text().format(
        findings=findings(results, HERE / "growth.json", EXPERIMENTS / "onset_law.json", EXPERIMENTS / "dilution.json"),
        machines=machines({name: row for name, row in results.items() if not name.startswith("gpu_step.")}),
        training_step=ratios(results, "train_step.", "python -m bench.train_step"),
        by_hand=by_hand(results),
        installing=installing(results),
        step_profile=step_profile(),
        circuits=ratios(results, "extract.", "python -m bench.circuits"),
        recipes=ratios(results, "phase_change", "python -m experiments.phase_change"),
        phase_change=phase_change(results),
        onset_law=onset_law(),
        dilution=dilution(),
        growth=growth(),
        memory=needs(),
        on_a_gpu=on_a_gpu(results),
    )  # fmt: skip
    (HERE / "README.md").write_text(re.sub(r"\n{3,}", "\n\n", page))  # a part may be empty
    draw_ratios(results, HERE / "ratios.png")


if __name__ == "__main__":
    main()
