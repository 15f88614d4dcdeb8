"""The frame around everything shown in a cell: one root element with its own style."""

from __future__ import annotations

from functools import cache
from html import escape
from pathlib import Path

from nbdurable.reprs import visible


@cache
def stylesheet() -> str:
    """Return the style of cell outputs; colours come from the host's theme."""
    return Path(__file__).with_name("css").joinpath("output.css").read_text(encoding="utf-8")


def page(body: str, *, name: str = "") -> str:
    """Return `body` (HTML) in the root element, with its style and no script."""
    # the two class names keep MathJax from reading prices as formulas
    classes = f"nbd {name} tex2jax_ignore mathjax_ignore".replace("  ", " ")
    return f'<div class="{classes}"><style>{stylesheet()}</style>{body}</div>'


def plain(text: str) -> str:
    """Return `text` as HTML that shows it as it is."""
    return escape(visible(text), quote=True)
