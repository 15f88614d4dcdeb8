from __future__ import annotations

import inspect

import pytest

from nbdurable import errors

CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, Exception)
}


def drawn_tree() -> dict[str, tuple[str, str]]:
    """Parse the tree in the module's docstring: class name to (parent, builtin or "")."""
    found: dict[str, tuple[str, str]] = {}
    open_at: list[tuple[int, str]] = []
    lines = [line for line in (errors.__doc__ or "").splitlines() if line.startswith("    ")]
    for line in lines:
        name, _, builtin = line.lstrip(" │├└─").partition(" ")
        indent = len(line) - len(line.lstrip(" │├└─"))
        open_at = [(at, parent) for at, parent in open_at if at < indent]
        found[name] = (open_at[-1][1] if open_at else "Exception", builtin.strip("()"))
        open_at.append((indent, name))
    return found


def test_every_error_is_drawn_in_the_docstring() -> None:
    assert set(drawn_tree()) == set(CLASSES)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_an_error_has_the_bases_that_are_drawn(name: str) -> None:
    parent, builtin = drawn_tree()[name]

    bases = [base.__name__ for base in CLASSES[name].__bases__]

    assert bases == [base for base in (parent, builtin) if base]


def test_the_public_names_are_sorted_and_complete() -> None:
    assert errors.__all__ == sorted([*CLASSES, "shown"])


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_an_error_keeps_its_text(name: str) -> None:
    assert str(CLASSES[name]("entry 'e9' is gone; look again")) == "entry 'e9' is gone; look again"


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_an_error_is_caught_as_one_of_ours(name: str) -> None:
    with pytest.raises(errors.NbDurableError, match="text"):
        raise CLASSES[name]("text")


@pytest.mark.parametrize(
    ("made", "facts"),
    [
        (errors.StoreLocked("t", path="a.duckdb", pid=7), {"path": "a.duckdb", "pid": 7}),
        (errors.EntryNotFound("t", entry_id="e9"), {"entry_id": "e9"}),
        (errors.BadPayload("t", path="fields.x[2]"), {"path": "fields.x[2]"}),
        (
            errors.ModelError("t", reason="rate_limit", status=429, retry_after_s=1.5),
            {"reason": "rate_limit", "status": 429, "retry_after_s": 1.5},
        ),
        (errors.ModelError("t"), {"reason": "other", "status": None, "run": None}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_attributes_carry_the_facts(made: Exception, facts: dict[str, object]) -> None:
    assert {name: getattr(made, name) for name in facts} == facts


# B39
def test_a_missing_entry_is_a_lookup_error() -> None:
    with pytest.raises(LookupError, match="gone"):
        raise errors.EntryNotFound("gone")


def test_a_short_value_is_shown_whole() -> None:
    assert errors.shown("it's") == '"it\'s"'


@pytest.mark.parametrize("value", ["x" * 1_000, list(range(1_000)), 10**200])
def test_a_long_value_is_cut_at_eighty_characters(value: object) -> None:
    text = errors.shown(value)

    assert len(text) == 80
    assert text.endswith("…")


def test_a_value_with_line_ends_is_shown_on_one_line() -> None:
    assert "\n" not in errors.shown("a\nb")
