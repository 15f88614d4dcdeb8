"""A page that shows the session tree without a notebook: module and kernel are in the page.

`html` gives it as one text; its scripts are loaded from blobs, as a host loads a widget's. What it
can do is ``window.bench`` of ``tests/js/bench.mjs``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from nbdurable.notebook import assets

JS = Path(__file__).with_name("js")
STYLES = ("widget.css", "tree.css")
LIGHT = {
    "--jp-layout-color1": "#fff",
    "--jp-layout-color2": "#eee",
    "--jp-border-color2": "#e0e0e0",
    "--jp-ui-font-color1": "rgba(0,0,0,.87)",
    "--jp-ui-font-family": "system-ui, sans-serif",
    "--jp-code-font-family": "DejaVu Sans Mono, monospace",
}
DARK = {
    **LIGHT,
    "--jp-layout-color1": "#212121",
    "--jp-layout-color2": "#424242",
    "--jp-border-color2": "#616161",
    "--jp-ui-font-color1": "#fff",
}


def html(*, is_dark: bool = False, width: int | None = None, has_theme: bool = True) -> str:
    """Return the page: in JupyterLab's colours, or bare without a theme."""
    names = (DARK if is_dark else LIGHT) if has_theme else {}
    theme = ";".join(f"{name}:{value}" for name, value in names.items())
    body = f'data-jp-theme-light="{"false" if is_dark else "true"}"' if has_theme else ""
    ground = "#111" if is_dark else "#fff"
    room = f"{width}px" if width else "auto"
    mark = " data-theme=dark" if is_dark and not has_theme else ""
    return (
        f'<!doctype html><html{mark}><meta charset="utf-8">'
        f"<style>body{{margin:12px;background:{ground};{theme}}}#host{{width:{room}}}"
        f"{assets.css(*_styles())}</style><body {body}><div id=host></div>"
        f"<script type=module>{_script()}</script>"
    )


def _styles() -> tuple[str, ...]:
    names = (path.name for path in assets.CSS.glob("*.css"))
    return tuple(sorted(names, key=lambda name: name != "widget.css"))


def _script() -> str:
    kernel = JS.joinpath("kernel.mjs").read_text(encoding="utf-8")
    bench = JS.joinpath("bench.mjs").read_text(encoding="utf-8")
    own = kernel + re.sub(r"^import .*;\n", "", bench, flags=re.MULTILINE)
    texts = json.dumps([assets.esm("tree/tree.js"), own]).replace("</", "<\\/")
    return (
        f"const [tree, own] = await Promise.all({texts}.map((text) => "
        "import(URL.createObjectURL(new Blob([text], { type: 'text/javascript' })))));"
        "window.bench = own.bench(tree.default.render);"
    )
