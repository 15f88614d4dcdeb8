"""What a view asks for as calls of the API: checked, executed and shown as code alike.

Owns the names and arguments of actions. Does not own when they are done (`actions`). The one idea:
an action is a line that a person could have typed, and that line is the one thing that is executed
and copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nbdurable.errors import shown, told
from nbdurable.inputs import user
from nbdurable.loaded import Loaded
from nbdurable.models.params import RECORDED
from nbdurable.notebook.bridge import Refused

MOST_SAMPLES = 1_000
_OPTIONS = ("model", "system", "params", "effects")

# what each action takes: what it needs, then what it may have
ACTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "branch": (("n",), ()),
    "rerun": (("n",), _OPTIONS),
    "edit": (("n", "text"), ("run", *_OPTIONS)),
    "sample": (("n", "count"), _OPTIONS),
    "run": (("text",), ("at", *_OPTIONS)),
    "goon": (("n",), _OPTIONS),
    "cancel": (("run",), ()),
    "stop": (("experiment",), ()),
    "label": (("n", "text"), ()),
    "rate": (("n", "score"), ("name", "note")),
    "prefer": (("winner", "losers"), ()),
    "answer": (("id", "allow"), ()),
    "compact": ((), ()),
}
# arguments that mean something of their own in one action: the checks they have
_MEANS = {("label", "text"): "label", ("edit", "run"): "is_run", ("branch", "n"): "at"}

STARTS = frozenset(("rerun", "edit", "sample", "run", "goon", "compact"))
_LIVE = frozenset(("run", "rerun", "edit", "sample"))  # verbs that take wait= and show=


@dataclass(frozen=True, slots=True)
class Said:
    """A user's words in a call that stores them without a run."""

    text: str

    def __repr__(self) -> str:
        return f"nb.user({self.text!r})"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a verb of the session."""

    verb: str
    args: tuple[object, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    is_live: bool = False

    def on(self, session: Any) -> Any:
        """Call it; what runs is not waited for.

        Raises
        ------
        Refused, NbDurableError
            Nothing was begun; the text says why.
        """
        args = [user(one.text) if isinstance(one, Said) else one for one in self.args]
        beside = {"wait": False, "show": None} if self.is_live else {}
        try:
            return getattr(session, self.verb)(*args, **self.options, **beside)
        except (TypeError, ValueError) as error:  # so verbs refuse arguments, of which a page
            raise Refused(told(error)) from error  # may send any: no fault of ours to be logged

    def code(self, name: str) -> str:
        """Return the line that does it, in which the session is called `name`."""
        options = [f"{option}={value!r}" for option, value in self.options.items()]
        return f"{name}.{self.verb}({', '.join([*map(repr, self.args), *options])})"


def calls_of(image: Loaded, act: str, given: Mapping[str, object]) -> tuple[Call, ...]:
    """Return the calls that an action stands for, in order; the last one's result is its own.

    Raises
    ------
    Refused
        The action or an argument is not known, missing, or of the wrong kind.
    """
    args = checked(act, given)
    options = _options(args)
    match act:
        case "branch":
            return (Call("branch", (args["n"] or None,)),)
        case "rerun":
            return (Call("rerun", (args["n"],), options, True),)
        case "edit":
            return _edit(image, args, options)
        case "sample":
            return (Call("sample", (args["count"],), {"at": args["n"], **options}, True),)
        case "run":
            at = {"at": args["at"] or None} if "at" in args else {}
            return (Call("run", (args["text"],), {**at, **options}, True),)
        case "goon":
            return (Call("run", (), {"at": args["n"], **options}, True),)
        case "label":
            return (Call("label", (args["n"], args["text"])),)
        case "rate":
            beside = {name: args[name] for name in ("name", "note") if args.get(name) is not None}
            return (Call("rate", (args["n"], args["score"]), beside),)
        case "prefer":
            return (Call("prefer", (args["winner"], *(args["losers"] or (None,)))),)
        case "compact":
            return (Call("compact"),)
    raise Refused(f"action {shown(act)} is no call of a session")


def _edit(image: Loaded, args: dict[str, Any], options: dict[str, object]) -> tuple[Call, ...]:
    n, text = args["n"], args["text"]
    entry_id = image.id_of(n)
    node = image.stored(entry_id) if entry_id is not None else None
    if node is None or node.role != "user":
        return (Call("edit", (n, text), options),)
    if args.get("run", True):
        return (Call("edit", (n, text), options, True),)
    parent = image.tree.get(node.parent_id)
    return Call("branch", (parent.n if parent else None,)), Call("append", (Said(text),))


def _options(args: Mapping[str, Any]) -> dict[str, object]:
    plain = {name: args[name] for name in ("model", "system") if name in args}
    effects = {"effects": "run"} if args.get("effects") == "run" else {}
    return {**plain, **args.get("params", {}), **effects}


# -- arguments ---------------------------------------------------------------------------------


def checked(act: str, given: Mapping[str, object]) -> dict[str, Any]:
    """Return an action's arguments, each of its kind, or raise `Refused` in one line."""
    if act not in ACTS:
        raise Refused(f"action {shown(act)} is not known here; reload the page")
    needed, allowed = ACTS[act]
    if unknown := [name for name in given if name not in (*needed, *allowed)]:
        takes = ", ".join((*needed, *allowed)) or "nothing"
        raise Refused(f"{act} takes no {shown(unknown[0])}; it takes {takes}")
    if missing := [name for name in needed if name not in given]:
        raise Refused(f"{act} was given no {missing[0]!r}; give one")
    found = {}
    for name, value in given.items():
        check = _CHECKS[_MEANS.get((act, name), name)]
        if value is None and name in ("model", "at", "params", "effects", "name", "note"):
            continue  # as if it had not been given
        if (why := check(value)) is not None:
            # of parameters not even a value is repeated: it may be a key (B69)
            found_here = "no such object" if name == "params" else shown(value)
            raise Refused(f"{name} of {act} is {found_here}; give {why}")
        found[name] = value
    return found


def _must(is_good: Callable[[Any], bool], what: str) -> Callable[[object], str | None]:
    def check(value: object) -> str | None:
        return None if is_good(value) else what

    return check


def _is_int(value: object, least: int, most: float = float("inf")) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _check_params(value: object) -> str | None:
    if not isinstance(value, Mapping):
        return "an object of parameters by name"
    if unknown := [name for name in value if name not in RECORDED]:
        return f"parameters that are recorded, such as temperature; {shown(unknown[0])} is none"
    return None


_ENTRY = _must(lambda value: _is_int(value, 1), "the ordinal of an entry, such as 12")
_PLACE = _must(lambda value: _is_int(value, 0), "the ordinal of an entry, or 0 for the root")
_WORDS = _must(_is_text, "text that is not blank")
_MAYBE_WORDS = _must(lambda value: value is None or _is_text(value), "text, or null to clear")
_CHOICE = _must(lambda value: isinstance(value, bool), "true or false")
_CHECKS: dict[str, Callable[[object], str | None]] = {
    "n": _ENTRY,
    "at": _PLACE,
    "winner": _ENTRY,
    "losers": _must(
        lambda value: isinstance(value, list) and all(_is_int(n, 1) for n in value),
        "a list of ordinals; an empty one takes the preference back",
    ),
    "text": _WORDS,
    "label": _MAYBE_WORDS,
    "model": _WORDS,
    "system": _must(lambda value: value is None or isinstance(value, str), "text or null"),
    "params": _check_params,
    "effects": _must(lambda value: value in ("run", "refuse"), "'run' or 'refuse'"),
    "count": _must(
        lambda value: _is_int(value, 1, MOST_SAMPLES), f"a whole number from 1 to {MOST_SAMPLES:,}"
    ),
    "score": _must(
        lambda value: value is None or isinstance(value, int | float), "a number, a bool, or null"
    ),
    "name": _WORDS,
    "note": _must(lambda value: isinstance(value, str), "text"),
    "run": _WORDS,
    "experiment": _WORDS,
    "is_run": _CHOICE,
    "id": _WORDS,
    "allow": _CHOICE,
}
