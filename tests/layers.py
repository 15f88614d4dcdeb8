"""The house as a table: which module stands on which floor, and which library lives where."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

# From the ground up. A module imports from its own floor and those below; a name stands for the
# module and all below it, the longest name that fits wins. "." is the package itself.
FLOORS: tuple[frozenset[str], ...] = tuple(
    frozenset(names.split())
    for names in (
        "errors tracebacks shells",
        "ids blocks frozen hosts watching",
        "entries wire codec stored events",
        "tree pairing views compaction annotations answers schemas",
        "paths growing",
        "stores models media inputs tools toolspec hooks threads background secrets",
        "budget lifecycle origin questions textstream",
        "loaded settings run replay",
        "modelcall references reruns forking replay.events",
        "toolstep",
        "loop compacting",
        "notebook notebook.bridge notebook.assets display terminal outline reprs",
        "planning starting replay.verbs handle asking annotating",
        "exploring session",
        "opening",
        "explore frames library formats pictures",
        "notebook.tree notebook.compare notebook.sessions notebook.showing notebook.magics testing",
        ".",
        "demo",
        "cli commands __main__",
    )
)

# `session` alone may reach upward, inside methods, and only to these; `exploring` is part of it.
SESSION_REACHES = frozenset(
    "explore frames library formats notebook.tree notebook.compare notebook.showing".split()
)

# What shows itself in a notebook, from below, inside methods.
SHOWN_BY = {"library": "notebook.sessions", "explore.experiment": "notebook.compare.matrix"}

# Where alone each heavy library may be imported, outside type-checking blocks.
HOMES: dict[str, tuple[str, ...]] = {
    "duckdb": ("stores.duckdb",),
    "litellm": ("models.litellm",),
    "xllamacpp": ("models.local", "models.local_engine"),
    "pandas": ("frames", "explore.frame"),
    "anywidget": ("notebook",),
    "ipywidgets": ("notebook",),
    "psycopg": ("stores.postgres",),
}

# Heavy libraries that a module may import only inside a function, unless it is their home.
LAZY = frozenset(
    {*HOMES, *"IPython jsonschema matplotlib numpy PIL pydantic referencing rich tqdm".split()}
)


@dataclass(frozen=True, slots=True)
class Import:
    """One import of a module: `target` is ours without the package's name, or a library."""

    module: str
    target: str
    line: int
    is_ours: bool
    is_top: bool

    def __str__(self) -> str:
        return f"{self.module or 'nbdurable'}:{self.line} imports {self.target or 'nbdurable'}"


def module_name(path: Path, package: Path) -> str:
    """Return a file's module name without the package's name; "" is the package."""
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports_of(path: Path, package: Path) -> Iterator[Import]:
    """Yield the imports of a file that happen when it runs."""
    module = module_name(path, package)
    tree = ast.parse(path.read_text("utf-8"))
    skipped = {id(n) for block in _type_checking(tree) for n in ast.walk(block)}
    inside = {id(n) for f in ast.walk(tree) if _is_function(f) for n in ast.walk(f)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in skipped:
            for target in _targets(node, package):
                is_ours = target == "nbdurable" or target.startswith("nbdurable.")
                shown = target.partition(".")[2] if is_ours else target.partition(".")[0]
                yield Import(module, shown, node.lineno, is_ours, id(node) not in inside)


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _type_checking(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield from node.body


def _targets(node: ast.Import | ast.ImportFrom, package: Path) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = "." * node.level + (node.module or "")
    for alias in node.names:
        submodule = package.parent.joinpath(*base.split("."), alias.name)
        is_module = submodule.is_dir() or submodule.with_suffix(".py").exists()
        yield f"{base}.{alias.name}" if is_module else base


def floor_of(module: str) -> int:
    """Return the floor of a module, by the longest name in the table that fits.

    Raises
    ------
    LookupError
        The table has no place for it.
    """
    parts = module.split(".")
    names = [".".join(parts[:length]) for length in range(len(parts), 0, -1)] if module else ["."]
    for name in names:
        for floor, modules in enumerate(FLOORS):
            if name in modules:
                return floor
    raise LookupError(f"module {module!r} stands on no floor; give it one in tests/layers.py")


def is_within(module: str, names: Iterable[str]) -> bool:
    """Return whether a module is one of `names` or inside one."""
    return any(module == name or module.startswith(f"{name}.") for name in names)


def is_allowed(found: Import) -> bool:
    """Return whether one import keeps to the floors and homes."""
    if not found.is_ours:
        is_free = found.target not in HOMES and not (found.is_top and found.target in LAZY)
        is_free |= found.target == "numpy" and is_within(found.module, HOMES["pandas"])
        return is_free or is_within(found.module, HOMES.get(found.target, ()))
    if floor_of(found.target) <= floor_of(found.module):
        return True
    if not found.is_top and SHOWN_BY.get(found.module) == found.target:
        return True
    reaches_up = found.module in ("session", "exploring") and not found.is_top
    return reaches_up and is_within(found.target, SESSION_REACHES)
