"""The project keeps its own rules: light import, floors, sizes, docstrings, clean files."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from layers import FLOORS, LAZY, Import, floor_of, imports_of, is_allowed, module_name

import nbdurable

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "nbdurable"
MODULES = sorted(PACKAGE.rglob("*.py"))
SOURCES = sorted(p for f in ("nbdurable", "tests") for p in (ROOT / f).rglob("*.py"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_PUBLIC_NAMES = 25

Function = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


def public_definitions(tree: ast.Module | ast.ClassDef) -> Iterator[Function | ast.ClassDef]:
    for node in tree.body:
        # A test of the contract says its promise in its name.
        is_public = not getattr(node, "name", "").startswith(("_", "test_"))
        if isinstance(node, Function | ast.ClassDef) and is_public:
            if not {"overload", "override"} & {ast.unparse(d) for d in node.decorator_list}:
                yield node
            if isinstance(node, ast.ClassDef):
                yield from public_definitions(node)


def code_lines(node: Function) -> int:
    """Return how many lines a function has besides its docstring."""
    first, last = node.body[0], node.end_lineno or 0
    text = ast.get_docstring(node, clean=False)
    told = (first.end_lineno or 0) - first.lineno + 1 if text is not None else 0
    return last - node.lineno + 1 - told


# -- the import ------------------------------------------------------------------------------------


def test_importing_the_package_loads_no_heavy_library() -> None:
    program = "import sys, nbdurable; print(*sys.modules)"

    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()

    assert {*LAZY} & {*loaded} == set()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_what_its_floor_allows(path: Path) -> None:
    broken = [str(found) for found in imports_of(path, PACKAGE) if not is_allowed(found)]

    assert broken == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_has_a_floor(path: Path) -> None:
    assert floor_of(module_name(path, PACKAGE)) < len(FLOORS)


@pytest.mark.parametrize(
    ("module", "target", "is_ours", "is_top", "allowed"),
    [
        ("tree", "entries", True, True, True),
        ("entries", "tree", True, False, False),
        ("session", "frames", True, False, True),
        ("session", "frames", True, True, False),
        ("run", "frames", True, False, False),
        ("stores.duckdb.writer", "duckdb", False, True, True),
        ("stores.memory", "duckdb", False, False, False),
        ("frames", "pandas", False, False, True),
        ("media", "pandas", False, False, False),
        ("tools", "pydantic", False, False, True),
        ("tools", "pydantic", False, True, False),
        ("tools", "json", False, True, True),
    ],
)
def test_the_table_of_floors_tells_right_from_wrong(
    module: str, target: str, is_ours: bool, is_top: bool, allowed: bool
) -> None:
    assert is_allowed(Import(module, target, 1, is_ours, is_top)) is allowed


def test_a_module_without_a_floor_is_named() -> None:
    with pytest.raises(LookupError, match="module 'attic' stands on no floor; give it one in"):
        floor_of("attic")


# -- sizes and docstrings --------------------------------------------------------------------------


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_is_not_too_long(path: Path) -> None:
    lines = len(path.read_text("utf-8").splitlines())

    assert lines <= MAX_FILE_LINES


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_function_is_too_long(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))

    long = [
        f"{node.name} at line {node.lineno}"
        for node in ast.walk(tree)
        if isinstance(node, Function) and code_lines(node) > MAX_FUNCTION_LINES
    ]

    assert long == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_public_name_has_a_docstring(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    if tree.body and path.name != "__init__.py":
        assert ast.get_docstring(tree), "the module has none"

    missing = [node.name for node in public_definitions(tree) if not ast.get_docstring(node)]

    assert missing == []


# -- public names ----------------------------------------------------------------------------------


def by_kind_and_name(name: str) -> tuple[int, str]:
    """Order names as the linter does: constants, classes, the rest."""
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return kind, name


def test_the_public_names_are_sorted_few_and_there() -> None:
    public = list(nbdurable.__all__)

    assert public == sorted(public, key=by_kind_and_name)
    assert len([name for name in public if name != "errors"]) <= MAX_PUBLIC_NAMES
    assert [name for name in public if not hasattr(nbdurable, name)] == []


def test_no_public_name_is_left_out_of_all() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text("utf-8"))

    named = {n.name for n in tree.body if isinstance(n, Function | ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nbdurable"):
            named |= {alias.asname or alias.name for alias in node.names}

    assert {name for name in named if not name.startswith("_")} <= {*nbdurable.__all__}


# -- files -----------------------------------------------------------------------------------------

# Spelled in pieces, so that this file does not name them itself.
_HOSTS = ("py" + "pi.org", "python" + "hosted", "registry.npm" + "js", "deb.debian" + ".org")
FORBIDDEN = re.compile(
    r"(?<![\w.~$}])/(?:" + "wo" + r"rk|ro" + r"ot)/|--" + r"(?:extra-)?index-url|"
    r"/opt/" + "py" + "pi|" + "|".join(map(re.escape, _HOSTS))
)


def test_no_file_names_a_machine_path_or_a_package_host() -> None:
    found = []
    for path in tracked_files():
        text = path.read_bytes().decode("utf-8", "replace")
        found += [f"{name_of(path)}: {hit[0]}" for hit in FORBIDDEN.finditer(text)]

    assert found == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_a_notebook_is_stripped_of_outputs(path: Path) -> None:
    notebook = json.loads(path.read_text("utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]

    assert code
    assert [cell["outputs"] for cell in code if cell["outputs"]] == []
    assert [n for cell in code if (n := cell["execution_count"]) is not None] == []
    assert "widgets" not in notebook["metadata"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_a_notebook_is_short(path: Path) -> None:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    lines = [len("".join(c["source"]).splitlines()) for c in cells if c["cell_type"] == "code"]

    assert 8 <= len(cells) <= 20
    assert max(lines) < 12


def test_the_demo_installs_what_the_notebooks_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert "nbdurable[local,plot]" in project["optional-dependencies"]["demo"]


def test_the_core_whose_coverage_is_enforced_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    (core,) = re.findall(r"^CORE := (.*)$", makefile, re.MULTILINE)

    assert [n for n in core.split() if not (PACKAGE / f"{n}.py").exists()] == []


def test_the_changelog_names_the_version_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")

    assert f"## [{project['version']}]" in changelog


def test_the_links_of_the_readme_lead_somewhere() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", readme)

    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
