"""The browser's side of a widget as one text: modules and styles joined, without a bundler.

A host loads a widget's script from a blob, where a relative import has no base, so the modules are
joined here (anywidget's ``_esm`` takes one text). They are written as ordinary modules for the
tests and the type checker, under three rules that `esm` holds them to: named imports from a
file (``import { a, b } from "./x.js";``), exports by declaration (``export function``,
``export class``, ``export const``), and no top-level name used by two modules.
"""

from __future__ import annotations

import posixpath
import re
from functools import cache
from pathlib import Path

JS = Path(__file__).with_name("js")
CSS = Path(__file__).with_name("css")

_IMPORT = re.compile(r'^import\s*\{[^}]*\}\s*from\s*"(\.{1,2}/[\w/.-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function|class|const|let)", re.MULTILINE)
_TOP = re.compile(
    r"^(?:export )?(?:async )?(?:function\*?|class|const|let) +([\w$]+)", re.MULTILINE
)
_FOREIGN = re.compile(r"^(?:import\b.*|export (?!default).*)$", re.MULTILINE)


@cache
def esm(entry: str) -> str:
    """Return the module `entry` (a path in ``js/``) with all it imports, as one module.

    Raises
    ------
    ValueError
        A module breaks one of the rules above.
    """
    texts: dict[str, str] = {}
    _collect(entry, texts, ())
    owner: dict[str, str] = {}
    for name, text in texts.items():
        for top in _TOP.findall(text):
            if owner.setdefault(top, name) != name:
                raise ValueError(
                    f"js/{name} declares {top}, as js/{owner[top]} does; joined modules share "
                    "one scope, so rename one"
                )
    return "\n".join(_bare(name, text, is_entry=name == entry) for name, text in texts.items())


def _collect(name: str, texts: dict[str, str], path: tuple[str, ...]) -> None:
    """Add a module after those it imports."""
    if name in path:
        raise ValueError(f"js/{name} imports itself through {' > '.join(path)}; break the circle")
    if name in texts:
        return
    text = JS.joinpath(name).read_text(encoding="utf-8")
    for imported in _IMPORT.findall(text):
        beside = posixpath.join(posixpath.dirname(name), imported)
        _collect(posixpath.normpath(beside), texts, (*path, name))
    texts[name] = text


def _bare(name: str, text: str, *, is_entry: bool) -> str:
    text = _EXPORT.sub("", _IMPORT.sub("", text))
    if not is_entry:
        text = re.sub(r"^export default .*;\n", "", text, flags=re.MULTILINE)
    if foreign := _FOREIGN.search(text):
        raise ValueError(
            f"js/{name} says {foreign[0][:80]!r}, which cannot be joined; import names from a "
            "sibling module, export by declaration"
        )
    return text


@cache
def css(*names: str) -> str:
    """Return the styles of the named files in ``css/``, joined."""
    return "\n".join(CSS.joinpath(name).read_text(encoding="utf-8") for name in names)
