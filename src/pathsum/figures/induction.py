"""The figure of matching and copying by weights. Induction heads are expected in one corner."""

from __future__ import annotations

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from pathsum.claims.content import matching
from pathsum.claims.formatting import head_label, layers_label, plural
from pathsum.figures import symbols
from pathsum.figures.base import Figure, axes_through_zero, layer_palette, picture
from pathsum.records.heads import COPYING, HeadRow
from pathsum.records.results import FORMED, Results


def induction_corner(results: Results) -> Figure | None:
    """Draw the matching positivity and the copying positivity of every head after the first layer (docs/framework.md
    §5.5). None without such heads."""
    rows = [
        {
            "cell": c.name,
            "layers": layers_label(c.summary.n_layers),
            "head": head_label(h.layer, h.head),
            "pair": f"{pair.query} × {pair.key}" if (pair := matching(c, h.layer, h.head)) else "–",
            "matching_positivity": pair.positivity if pair else h.qk_matching_positivity,
            "qk_matching_positivity": h.qk_matching_positivity,
            "copying_positivity": h.copying_positivity,
            "prefix_matching": h.prefix_matching,
        }
        for c in results.cells.values()
        for h in c.rows(HeadRow)
        if h.qk_matching_positivity is not None
    ]
    if not rows:
        return None
    data = pd.DataFrame(rows)

    def paint(canvas: Canvas) -> None:
        ax = canvas.subplots()
        ax.add_patch(Rectangle((0.5, 0.5), 0.55, 0.55, color="#000000", alpha=0.06, lw=0))
        axes_through_zero(ax)
        sns.scatterplot(
            data,
            x="matching_positivity",
            y="copying_positivity",
            hue="layers",
            palette=layer_palette(results),
            size="prefix_matching",
            size_norm=(0, 1),
            sizes=(20, 320),
            alpha=0.6,
            legend=False,
            ax=ax,
        )
        ax.set(xlabel=f"matching: eigenvalue positivity of\n{symbols.PAIR_CIRCUIT} (−1..1)", xlim=(-1.05, 1.05))
        ax.set(ylabel=f"copying: eigenvalue positivity of\n{symbols.OV_CIRCUIT} (−1..1)", ylim=(-1.05, 1.05))
        ax.set_box_aspect(1)
        for share in (0.0, 0.25, 0.5):
            ax.scatter([], [], s=20 + 300 * share, color=symbols.FAINT, alpha=0.6, label=f"{share:g}")
        ax.legend(title="prefix\nmatching\n(0..1)", loc="center left", bbox_to_anchor=(1.0, 0.5), labelspacing=0.9)

    strong = data["prefix_matching"] >= FORMED
    whole = "; for heads marked “–” in the CSV, through the strongest first-layer previous-token head" * bool(
        (data["pair"] == "–").any()
    )
    corner = (data["matching_positivity"] > COPYING) & (data["copying_positivity"] > COPYING)
    inside, outside, n_strong = (int(some.sum()) for some in (strong & corner, ~strong & corner, strong))
    caption = (
        f"Each point is a head after the first layer. In the shaded corner, both eigenvalue positivities exceed "
        f"{COPYING}. Of {plural(n_strong, 'head')} with prefix matching ≥ {FORMED}, {inside} "
        f"{'lies' if inside == 1 else 'lie'} in this corner; of the {len(data) - n_strong} others, {outside}. Matching "
        "is computed on one pair of paths per head, one to the query (q) and one to the key (k): the pair that "
        "contributes most to the head's preference (score above the mean over keys) for the token after the earlier "
        f"occurrence of the current one, on repeated random tokens{whole}. M is the product of the OV matrices along a "
        "path."
    )
    return picture("induction_corner", "Matching and copying by weights", caption, data, (6.6, 5.2), paint)
