"""Secrets are passed on and reach nothing that is kept, shown, logged or raised."""

from __future__ import annotations

import json
import logging
import threading
import traceback
import warnings
from pathlib import Path

import pytest

import nbdurable as nb
from nbdurable.lifecycle import SessionEvent
from nbdurable.models.scripted import ScriptedModel, calls, cut
from nbdurable.stored import SpoolDraft
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.testing import FakeOpenAI, Step, steps

MARK = "s3cr3t"
KEY = f"sk-proj-{MARK}-1234567890"
SECRETS: dict[str, object] = {
    "api_key": KEY,
    "api_base": f"https://user:{MARK}@example.invalid/v1",
    "headers": {"Authorization": f"Bearer {MARK}"},
    "extra_headers": {"X-Api-Key": MARK},
    "extra_body": {"token": MARK, "deep": [{"password": MARK}]},
    "aws_access_key_id": MARK,
    "aws_secret_access_key": MARK,
    "vertex_credentials": f'{{"private_key": "{MARK}"}}',
    "azure_ad_token": MARK,
    "metadata": {"user_api_key": MARK},
}


class Note(nb.CustomEntry):
    kind = "secrets-note"


def look() -> str:
    """Look."""
    return "seen"


def kept_under(folder: Path) -> bytes:
    """Return the bytes of every file under a folder."""
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "kept"
    folder.mkdir()
    return folder / "chats.duckdb"


# -- what is kept ----------------------------------------------------------------------------------


# B69
@pytest.mark.parametrize("given_to", ["open", "run"])
def test_no_secret_is_in_the_file_whatever_a_run_did(path: Path, given_to: str) -> None:
    steps = (calls(("look", {})), "ok", cut("half"), "again", "A summary.", "on", "beside")
    model = ScriptedModel(*steps)
    opened = SECRETS if given_to == "open" else {}
    given = {} if given_to == "open" else SECRETS
    with nb.open("s", store=path, model=model, tools=[look], temperature=0.5, **opened) as chat:  # type: ignore[arg-type]
        chat.run("one", Note(), show=None, **given)  # type: ignore[arg-type]
        with pytest.raises(nb.errors.ModelError, match="broke off"):
            chat.run("two", show=None, **given)  # type: ignore[arg-type]
        chat.rerun(4, show=None, **given)  # type: ignore[arg-type]
        chat.compact()
        chat.fork("child").run("three", show=None, **given)  # type: ignore[arg-type]
        records = [record for record, _ in chat.image.store.load_runs("s")]
        asked = [entry for entry in chat.entries(nb.MessageEntry) if entry.message.reply]
    kept = kept_under(path.parent)

    assert dict(model.requests[0].params) == {"temperature": 0.5, **SECRETS}
    assert MARK.encode() not in kept
    assert b"temperature" in kept
    assert {json.loads(r.params_json)["temperature"] for r in records} == {0.5}
    assert {tuple(entry.message.reply.params) for entry in asked if entry.message.reply} == {
        ("temperature",)
    }


# B24 B69
def test_no_secret_is_in_what_is_spooled_of_an_answer_in_flight(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spooled, go = threading.Event(), threading.Event()
    spool = DuckDBStore.spool

    def watched(self: DuckDBStore, draft: SpoolDraft) -> None:
        spool(self, draft)
        spooled.set()

    monkeypatch.setattr(DuckDBStore, "spool", watched)
    model = ScriptedModel(("half an answer", go))
    with nb.open("s", store=path, model=model, **SECRETS) as chat:  # type: ignore[arg-type]
        run = chat.run("one", wait=False, show=None)
        assert spooled.wait(30)
        kept = kept_under(path.parent)
        go.set()
        run.wait()

    assert b"half an answer" in kept
    assert MARK.encode() not in kept


# B69
def test_equal_requests_are_equal_whatever_the_key(path: Path) -> None:
    with nb.open("s", store=path, model=ScriptedModel("ok")) as chat:
        chat.run("one", show=None, api_key=KEY)
        chat.run("one", at=None, show=None, api_key="another")

        first, second = (record for record, _ in chat.image.store.load_runs("s"))

    assert first.request_digest == second.request_digest


# -- what is shown ---------------------------------------------------------------------------------


# B69
def test_no_secret_is_in_any_repr_event_or_preview() -> None:
    told: list[SessionEvent] = []
    hooked: list[str] = []

    class Watch:
        def before_model(self, request: object) -> None:
            hooked.append(repr(request))

    model = ScriptedModel(calls(("look", {})), "ok")
    chat = nb.open(
        "s",
        store=":memory:",
        model=model,
        tools=[look],
        hooks=Watch(),
        publisher=told.append,
        **SECRETS,  # type: ignore[arg-type]
    )
    run = chat.run("one", show=None)
    chat.branch(1)
    shown = [
        *(repr(value) for value in (chat, run, chat.settings, model, chat.image, told)),
        *(repr(value) for value in (run.events, run.entries, chat.tree(), chat.runs())),
        repr(chat.image.store.load_runs("s")),
        repr(chat.context()),
        *hooked,
        json.dumps(chat.preview("two", api_version=MARK)),
    ]

    assert [text for text in shown if MARK in text] == []
    assert shown[-1].count('"***"') == len(SECRETS) + 1


# B25 B69
def test_no_secret_is_in_what_refuses_or_warns() -> None:
    chat = nb.open("s", store=":memory:", model=ScriptedModel("ok"))
    raised: list[BaseException] = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for bad in (
            {"apikey": KEY},
            {"temperature": float("nan"), "api_key": KEY},
            {"stop": {KEY}, "api_key": KEY},
        ):
            try:
                chat.run("one", show=None, **bad)  # type: ignore[arg-type]
            except nb.errors.NbDurableError as exc:
                raised.append(exc)

    assert [str(w.message) for w in warned] == [
        "parameter 'apikey' is not known; did you mean 'api_key'?"
    ]
    assert len(raised) == 2
    assert not any(MARK in "".join(traceback.format_exception(exc)) for exc in raised)


# -- a real provider -------------------------------------------------------------------------------

ANSWERS = {
    "answers": steps.text("Hello."),
    "echoes the key": steps.status(401, f"Incorrect API key provided: {KEY}. Find yours at …"),
    "echoes a header": steps.status(400, f"bad header X-Api-Key: {MARK}"),
    "echoes the body": steps.reply({"error": {"message": f"token {MARK}"}}, status=422),
    "answers no JSON": [steps.raw(f"<html>{KEY}</html>".encode()), steps.drop()],
    "breaks off": [steps.delta(content="Hel"), steps.drop()],
}


# B69
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("from_environment", [False, True], ids=["given", "environment"])
def test_no_secret_comes_back_from_a_provider(
    path: Path,
    fake: FakeOpenAI,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    answer: Step,
    from_environment: bool,
) -> None:
    caplog.set_level(logging.DEBUG)
    fake.script(answer)
    params: dict[str, object] = {
        "api_base": fake.base_url,
        "extra_headers": {"X-Api-Key": MARK},
        "extra_body": {"token": MARK},
        "num_retries": 0,
    }
    if from_environment:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
    else:
        params["api_key"] = KEY
    seen: list[str] = []
    with nb.open("s", store=path, model="openai/fake", **params) as chat:  # type: ignore[arg-type]
        run = chat.run("one", wait=False, show=None)
        try:
            run.wait()
        except nb.errors.ModelError as exc:
            seen += [*traceback.format_exception(exc), repr(exc), repr(vars(exc))]
        seen += [repr(run), str(run.error), repr(run.events), repr(chat), repr(chat.settings)]
        seen += [json.dumps(chat.preview("two", at=None)), repr(chat.runs())]
    out, err = capfd.readouterr()
    seen += [out, err, caplog.text]

    assert fake.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert fake.requests[0].headers["x-api-key"] == MARK
    assert fake.requests[0].body["token"] == MARK
    assert [text for text in seen if MARK in text] == []
    assert MARK.encode() not in kept_under(path.parent)


# B69
@pytest.mark.parametrize("place", ["parameter", "environment"])
def test_a_key_in_the_error_of_a_model_of_ones_own_is_hidden(
    path: Path, place: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"api_key": KEY[8:]} if place == "parameter" else {}
    if place == "environment":
        monkeypatch.setenv("MY_API_KEY", KEY[8:])
    model = ScriptedModel(ValueError(f"401 for {KEY[8:]}"))
    chat = nb.open("s", store=str(path), model=model, **given)

    with caplog.at_level(logging.DEBUG), pytest.raises(nb.errors.ModelError) as raised:
        chat.run("Q", show=None)
    said = "".join(traceback.format_exception(raised.value))
    said += repr(chat.runs()) + chat._repr_html_() + caplog.text
    chat.close()

    assert str(raised.value) == "model 'scripted' failed: ValueError: 401 for ***"
    assert MARK not in said
    assert MARK.encode() not in kept_under(path.parent)
