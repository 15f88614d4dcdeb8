"""Find functions of a test file that look like tests and that pytest never runs."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def uncollected(tree: ast.Module) -> Iterator[str]:
    """Yield ``line: name: why`` for each function or class that is never run.

    At module level that is whatever is neither a test nor a fixture nor named anywhere else, such
    as ``allow_two_openers``; elsewhere whatever is called ``test…`` where pytest does not look.
    """
    uses = _uses(tree)
    yield from _duplicates(tree.body)
    bases = {ast.unparse(base) for node in tree.body for base in getattr(node, "bases", [])}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from _of_class(node, uses, is_base=node.name in bases or node.name in uses)
        elif isinstance(node, Function):
            yield from _of_function(node, uses)


def _of_function(node: Function, uses: set[str]) -> Iterator[str]:
    yield from _nested(node)
    if not node.name.startswith(("test", "pytest_")) and not _is_fixture(node):
        if node.name not in uses:
            yield f"{node.lineno}: {node.name}: no test by its name, and nothing calls it"


def _of_class(node: ast.ClassDef, uses: set[str], *, is_base: bool) -> Iterator[str]:
    yield from _duplicates(node.body)
    methods = [child for child in node.body if isinstance(child, Function)]
    tests = [method for method in methods if method.name.startswith("test")]
    has_init = any(method.name == "__init__" for method in methods)
    if tests and has_init:
        yield f"{node.lineno}: {node.name}: a class with __init__ is not collected"
    if tests and not node.name.startswith("Test") and not is_base:
        yield f"{node.lineno}: {node.name}: its name does not start with Test"
    for method in methods:
        yield from _nested(method)
        known = method.name.startswith(("test", "setup", "teardown", "__")) or _is_fixture(method)
        if tests and not node.bases and not known and method.name not in uses:
            yield f"{method.lineno}: {method.name}: no test by its name, and nothing calls it"


def _nested(node: Function) -> Iterator[str]:
    for inner in ast.walk(node):
        if inner is not node and isinstance(inner, Function) and inner.name.startswith("test_"):
            yield f"{inner.lineno}: {inner.name}: a test inside a function is not collected"


def _duplicates(body: Sequence[ast.stmt]) -> Iterator[str]:
    named = [node for node in body if isinstance(node, Definition)]
    counts = Counter(node.name for node in named)
    for node in named:
        if counts[node.name] > 1 and node.name.startswith(("test", "Test")):
            counts[node.name] -= 1
            yield f"{node.lineno}: {node.name}: defined again below, so only the last one runs"


def _is_fixture(node: Function) -> bool:
    return any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list)


def _uses(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.update(node.value.replace("(", " ").replace(".", " ").split())
    return names
