"""Wherever a secret comes from, it is found at no place that is kept, shown, logged or raised."""

from __future__ import annotations

import json
import logging
import traceback
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from treeing import Page

import nbdurable as nb
from nbdurable.blocks import Message, ToolCallBlock
from nbdurable.cli import main
from nbdurable.errors import ModelError, RunError
from nbdurable.formats import EXPORTS
from nbdurable.lifecycle import SessionEvent
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.secrets import HIDDEN, scrub, secrets_of, without_secrets

MARK = "".join(("s3cr", "3t"))  # a traceback that quotes this line does not tell it
VALUE = f"{MARK}Wx81plain"


@dataclass(frozen=True)
class Secret:
    """Where a secret comes from, and what somebody says who repeats it."""

    params: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    said: str = f"no access with {VALUE}"


SECRETS = {
    "the environment": Secret(environment={"A_PROVIDER_API_KEY": VALUE}),
    "api_key=": Secret({"api_key": VALUE}),
    "a parameter of a provider": Secret({"aws_secret_access_key": VALUE}),
    "a header": Secret({"extra_headers": {"X-Auth": VALUE}}, said=f"bad header X-Auth: {VALUE}"),
    "a body": Secret({"extra_body": {"deep": [{"password": VALUE}]}}),
    "the query of an address": Secret(
        {"api_base": f"https://a.invalid/v1?code={VALUE}&v=2"},
        said=f"no answer from https://a.invalid/v1/chat?v=2&code={VALUE}",
    ),
    "the login of an address": Secret(
        {"base_url": f"https://me%40home:{VALUE}@a.invalid/v1"},
        said=f"cannot log in as me@home with {VALUE}",
    ),
    "its form": Secret(said=f"401 for sk-proj-{MARK}-0123456789, or 'Bearer {MARK}'"),
    "the address of a store": Secret(said=f"no postgresql://me:{MARK}@db.invalid/chats"),
    "a query": Secret(said=f"GET https://a.invalid/v1?key={MARK}: 401"),
}


class Failure(Exception):
    """What code of somebody else's raises; its cause says the same."""

    @classmethod
    def of(cls, said: str) -> Failure:
        made = cls(f"outer: {said}")
        made.__cause__ = LookupError(f"inner: {said}")
        return made


class Silent(Failure):
    """One that only its cause tells."""

    @classmethod
    def of(cls, said: str) -> Silent:
        made = cls("it failed")
        made.__cause__ = LookupError(f"inner: {said}")
        return made


class Guard:
    """Hooks that fail and say why: before the tool ``look``, and after the answer ``Bye.``."""

    def __init__(self, said: str) -> None:
        self.said = said

    def before_tool(self, call: ToolCallBlock) -> None:
        if call.name == "look":
            raise Failure.of(self.said)

    def after_step(self, message: Message, results: object) -> None:
        if message.text == "Bye.":
            raise Failure.of(self.said)


def raised(run: nb.Run) -> str:
    """Return what a cell shows of how a run failed."""
    with pytest.raises(RunError) as caught:
        run.wait()
    return "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))


def shown(chat: nb.Session) -> Iterator[tuple[str, str]]:
    """Yield what a session shows of itself, by place."""
    from IPython.core.formatters import DisplayFormatter
    from ipywidgets import Widget

    with Page(chat) as page:
        page.settled()
        yield "widget", json.dumps(page.sent) + repr(page.tree)
        yield "saved widgets", json.dumps(Widget.get_manager_state(), default=str)
    runs = chat.runs()
    compared = nb.compare(*chat.entries()[:3])
    for value in (chat, *runs, compared, chat.tree(), chat.context()):
        bundle, _ = DisplayFormatter().format(value)
        yield f"output of {type(value).__name__}", json.dumps(bundle, default=str)
        yield f"repr of {type(value).__name__}", f"{value!r} {value}"
    for run in runs:
        yield "run", repr(vars(run)) if hasattr(run, "__dict__") else repr(run)
    yield "settings", repr(chat.settings) + repr(chat.settings.model)
    yield "request", json.dumps(chat.preview("Q", at=None))
    for name in ("df", "runs_df", "branches_df", "tools_df"):
        yield f"{name}()", getattr(chat, name)().to_csv()


def said_by_commands(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what the command line says of a store."""
    for arguments in (["ls"], ["show", "s", "--store"], ["check"], ["show", "none", "--store"]):
        command, *rest = arguments
        rest = [one for one in rest if one != "--store"]
        main([command, str(path), *rest])
    return "".join(capsys.readouterr())


def lived(secret: Secret, folder: Path, events: list[Any]) -> Iterator[tuple[str, str]]:
    """Live through each kind of failure; yield what is found, by place."""

    def fetch() -> str:
        """Fetch."""
        raise Failure.of(secret.said)

    def look() -> str:
        """Look."""
        return "seen"

    def publish(event: SessionEvent) -> None:
        raise Failure.of(secret.said)

    model = ScriptedModel(
        (*calls(("fetch", {}), ("look", {})),),
        "Well.",
        Failure.of(secret.said),
        ["Half an ", Silent.of(secret.said)],
        ModelError(f"their own: {secret.said}"),
        "Bye.",
        Failure.of(secret.said),
    )
    given: dict[str, Any] = dict(secret.params)
    path = folder / "chats.duckdb"
    with nb.open(
        "s", store=path, model=model, tools=[fetch, look], hooks=Guard(secret.said),
        publisher=publish, **given,
    ) as chat:  # fmt: skip
        chat.run("Fetch.", show=None)
        for place in ("a model's error", "an error in mid-answer", "an error of ours", "a hook's"):
            run = chat.run(f"{place}?", wait=False, show=None)
            yield place, raised(run)
            events.extend(run.events)
        yield "an experiment", f"{chat.sample(1, 'More?', show=None).wait().df().to_csv()}"
        yield "events", repr(events)
        yield from shown(chat)
        for format in EXPORTS:
            try:
                target = chat.export(folder / f"export.{format}", format)
            except nb.errors.NbDurableError as exc:  # no preferences, no finished answer
                yield format, str(exc)
            else:
                yield format, target.read_bytes().decode("latin-1")
    for file in folder.rglob("*"):
        if file.is_file():
            yield f"file {file.name}", file.read_bytes().decode("latin-1")


# B69
@pytest.mark.parametrize("source", SECRETS)
def test_a_secret_is_at_no_place_wherever_it_comes_from(
    source: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    secret, folder = SECRETS[source], tmp_path / "kept"
    folder.mkdir()
    for name, value in secret.environment.items():
        monkeypatch.setenv(name, value)
    events: list[Any] = []
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = list(lived(secret, folder, events))
    found.append(("commands", said_by_commands(folder / "chats.duckdb", capsys)))
    found.append(("warnings", " ".join(str(one.message) for one in warned)))
    found.append(("log", caplog.text))

    assert [place for place, text in found if MARK in text] == []
    assert "the publisher failed" in caplog.text
    results = [event.result.text for event in events if event.type == "tool_end"]
    told = {place: text for place, text in found if HIDDEN in text}
    assert {"a model's error", "a hook's", "log", "runs_df()", "jsonl", "events"} <= set(told)
    assert results == [] or all(HIDDEN in text for text in results)


# -- what is a secret ------------------------------------------------------------------------------

FORMS = [
    ("sk-ant-api03-abc123def456 is wrong", "*** is wrong"),
    ("hf_abcdef1234567890", "***"),
    ("AKIAIOSFODNN7EXAMPLE", "***"),
    ("token eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.sig", "token ***"),
    ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
    ('{"authorization": "Basic dXNlcjpw"}', '{"authorization": "Basic ***"}'),
    ("https://h/v1?key=abcd&a=1", "https://h/v1?key=***&a=1"),
    ("password=hunter22 host=db", "password=*** host=db"),
    ("postgresql://me:a@b:c@db/x", "postgresql://***@db/x"),
    ("xoxb-1234-abcdef", "***"),
]
PLAIN = [
    "no row with key=customer_42 in pk_customers, see hf_hub_download() and sk-learn",
    "see http://localhost:8888/tree?name=a@b and mail me@example.com",
    "the author's keyboard has no token; basic authentication is off",
    "task-1234567890 of disk-2 is done",
]


# B69
@pytest.mark.parametrize(("text", "left"), FORMS)
def test_a_key_is_known_by_its_form(text: str, left: str) -> None:
    assert scrub(text, frozenset()) == left


# B69
@pytest.mark.parametrize("text", PLAIN)
def test_a_text_without_a_key_is_left_as_it_is(text: str) -> None:
    assert scrub(text, frozenset()) == text


# B69
def test_no_half_of_a_secret_is_left_at_the_end_of_a_cut_text() -> None:
    text = "x" * 90 + "hunter22hunter22"

    assert scrub(text, frozenset({"hunter22hunter22"}), 100) == "x" * 90 + HIDDEN


# B69
def test_a_variable_is_a_secret_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MY_API_KEY", "HF_TOKEN", "DB_PASSWORD", "KEYBOARD_LAYOUT", "GIT_AUTHOR_NAME"):
        monkeypatch.setenv(name, f"value of {name}")

    found = secrets_of()

    assert {"value of MY_API_KEY", "value of HF_TOKEN", "value of DB_PASSWORD"} <= found
    assert not found & {"value of KEYBOARD_LAYOUT", "value of GIT_AUTHOR_NAME"}


# B69
def test_an_error_keeps_its_cause_where_nobody_tells_a_secret() -> None:
    error = ModelError("it broke", reason="server", status=500)
    error.__cause__ = ValueError("hunter22")

    assert without_secrets(error, frozenset()) is error
    like = without_secrets(error, frozenset({"hunter22"}))
    assert (type(like), str(like), like.reason, like.status) == (
        ModelError, "it broke", "server", 500,
    )  # fmt: skip
    assert like.__cause__ is None and error.__cause__ is not None


# B69
def test_errors_in_a_group_and_notes_are_looked_at_too() -> None:
    noted = ValueError("bad")
    noted.add_note("the key was hunter22")
    error = RunError("it broke")
    error.__cause__ = ExceptionGroup("two", [KeyError("a"), noted])

    assert without_secrets(error, frozenset({"hunter22"})).__cause__ is None


LONG = [
    "sk-" * 40_000, "://a" * 25_000, "eyJaaaaaaaaaa-" * 7_000, "api_key=" * 12_000,
    "bearer " * 15_000, "authorization: " * 7_000, "?key=" * 20_000, "a" * 1_000_000,
]  # fmt: skip


# B69
@pytest.mark.parametrize("text", LONG, ids=range(len(LONG)))
@pytest.mark.timeout(20)
def test_a_long_text_is_looked_through_in_one_go(text: str) -> None:
    """A pattern that looked at each place from each other would take minutes."""
    assert len(scrub(text, secrets_of(), 1_000)) <= 1_000
