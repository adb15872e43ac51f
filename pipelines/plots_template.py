"""Write the HTML template of `dvc plots show`. It includes the Vega library, so that plots need no network."""

from pathlib import Path

import vl_convert

TEMPLATE = Path(".dvc/tmp/plots.html")

if __name__ == "__main__":
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    TEMPLATE.parent.mkdir(parents=True, exist_ok=True)
    TEMPLATE.write_text(
        '<!DOCTYPE html><html><head><meta charset="utf-8"><title>dvc plots</title>'
        f"<script>{bundle}</script></head><body>{{plot_divs}}</body></html>",
        encoding="utf-8",
    )
