"""The dashboard at Weights & Biases (W&B) as code: the same panels as a workspace and as a W&B report.

Lines are plotted against tokens seen. Runs that agree in all settings of GROUPS form a group, even if they differ in
others, such as the seed. A group is one line, with the range over its runs. Metrics have the names that ``tracker``
logs. Nothing is sent until the workspace or the report is saved.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import wandb_workspaces.reports.v2 as reports
import wandb_workspaces.workspaces as workspaces

TITLE = "What zero, one and two layers of attention can do"
GROUPS = (
    *(f"model.{key}" for key in ("n_layers", "n_heads", "d_head", "clamp", "embedding_std", "smeared_keys")),
    *(f"train.{key}" for key in ("shuffled", "tokens")),
    *("corpus", "profile", "overrides"),  # overrides: of ad-hoc runs, which would otherwise join the grid's
)
LOSSES = {
    "In-context loss drop (nats)": "in_context_loss_drop_nats",
    "Held-out loss (nats)": "val_loss_nats",
    "Loss on the second copy of random tokens (nats)": "repeat_second_loss_nats",
}
TRAINING = {
    "Training loss (nats)": "train_loss_nats",
    "Learning rate of the attention weights": "lr_attention",
    "Learning rate of the embedding": "lr_embedding",
    "Speed (tokens per second)": "tokens_per_second",
}
Contents = Mapping[str, tuple[Sequence[str], Sequence[str]]]  # names of figures and of tables, by section of the report


def lines(n_layers: int) -> dict[str, list[Any]]:
    """Return, by section, line plots of the metrics of training for models of up to ``n_layers`` layers."""
    scores = {
        f"Best {score.replace('_', ' ')}, layer {layer}": f"layer{layer}/{score}"
        for score in ("prefix_matching", "previous_token", "copying")
        for layer in range(n_layers)
    }
    plots = {"In-context learning": LOSSES, "Head scores": scores, "Training": TRAINING}
    return {
        section: [
            reports.LinePlot(title=title, x="tokens", y=[key], title_x="tokens seen", groupby_rangefunc="minmax")
            for title, key in keys.items()
        ]
        for section, keys in plots.items()
    }


def findings(contents: Contents) -> dict[str, list[Any]]:
    """Return, by section, panels for the report's figures and tables. The last section is the complete report page."""
    panels = {
        section: [*map(_figure, figures), *map(_table, tables)] for section, (figures, tables) in contents.items()
    }
    return panels | {"The whole report": [reports.MediaBrowser(title="report", media_keys=["report"], num_columns=1)]}


def workspace(entity: str, project: str, n_layers: int, contents: Contents) -> workspaces.Workspace:
    """Return a W&B workspace with all panels, unsaved."""
    panels = lines(n_layers) | findings(contents)
    return workspaces.Workspace(
        entity=entity,
        project=project,
        name="pathsum",
        sections=[workspaces.Section(name=name, panels=shown, is_open=True) for name, shown in panels.items()],
        settings=workspaces.WorkspaceSettings(x_axis="tokens", max_runs=50),
        runset_settings=workspaces.RunsetSettings(groupby=[workspaces.Config(key) for key in GROUPS]),
    )


def report(entity: str, project: str, n_layers: int, contents: Contents) -> reports.Report:
    """Return a W&B report with all panels, unsaved: first the learning curves, then the sections of this
    project's report."""
    cells = reports.Runset(name="cells", filters="JobType = 'train'", groupby=[f"config.{key}" for key in GROUPS])
    made = reports.Runset(name="report", filters="JobType = 'report'")
    blocks: list[Any] = [reports.TableOfContents()]
    for runs, sections in ((cells, lines(n_layers)), (made, findings(contents))):
        for name, panels in sections.items():
            blocks += [reports.H2(name), reports.PanelGrid(runsets=[runs], panels=panels)]
    return reports.Report(entity=entity, project=project, title=TITLE, blocks=blocks, width="fluid")


def _figure(name: str) -> Any:
    return reports.MediaBrowser(title=name.replace("_", " "), media_keys=[f"figures/{name}"], num_columns=1)


def _table(name: str) -> Any:
    return reports.WeavePanelSummaryTable(table_name=f"tables/{name}", layout=reports.Layout(w=16, h=10))
