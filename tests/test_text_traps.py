"""Text that breaks other programs makes every trip: run, store, reopen, prompt, fork."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import nbdurable as nb
from nbdurable.models.base import CallDelta, TextDelta
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.base import Store
from nbdurable.testing import FakeOpenAI

TRAPS_FILE = Path(__file__).parent / "data" / "text_traps.jsonl"
TRAPS = {
    trap["name"]: trap.get("text", trap.get("unit", "") * trap.get("repeat", 0))
    for trap in map(json.loads, TRAPS_FILE.read_bytes().splitlines())
}
WORDS = {name: text for name, text in TRAPS.items() if text.strip()}


class Note(nb.CustomEntry):
    kind = "trap-note"
    text: str = ""


def texts_sent(model: ScriptedModel) -> list[str]:
    return [message.text for message in model.requests[-1].messages]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.duckdb"


# B64 case 31
@pytest.mark.parametrize("name", WORDS)
def test_text_makes_the_trip_through_run_file_and_prompt(path: Path, name: str) -> None:
    text = WORDS[name]
    model = ScriptedModel((TextDelta(text),))
    with nb.open("s", store=path, model=model, system=text) as chat:
        run = chat.run(text, Note(text=text), show=None)
        assert run.text == text
        assert model.requests[0].system == text
    model = ScriptedModel("ok")
    with nb.open("s", store=path, model=model) as chat:
        chat.run("next", show=None)

        child = chat.fork("child")
        assert texts_sent(model) == [text, text, "next"]
        assert [m.text for m in child.messages()] == [text, text, "next", "ok"]
        assert child.entries(Note)[0].text == text
        assert not any(e.is_repaired for e in chat.entries(nb.MessageEntry))
        child.close()


# B64 case 31
@pytest.mark.parametrize("name", [name for name in WORDS if name != "big_prompt"])
def test_text_makes_the_trip_through_tools(store: Store, name: str) -> None:
    text = WORDS[name]
    got: list[str] = []

    def echo(text: str) -> str:
        """Echo."""
        got.append(text)
        return text

    model = ScriptedModel(calls(("echo", {"text": text})), "ok", "ok")
    chat = nb.open("s", store=store, model=model, tools=[echo])
    chat.run("one", show=None)
    chat.close()
    chat = nb.open("s", store=store, model=model)

    chat.run("two", show=None)

    assert got == [text]
    sent = model.requests[-1].messages
    assert sent[1].tool_calls[0].arguments == {"text": text}
    assert sent[2].tool_results[0].text == text


# B45 B64
@pytest.mark.parametrize("name", [name for name in TRAPS if name not in WORDS])
def test_blank_text_is_stored_as_it_is_and_not_sent(store: Store, name: str) -> None:
    model = ScriptedModel("ok")
    chat = nb.open("s", store=store, model=model)
    chat.append(nb.user(TRAPS[name]), nb.assistant(TRAPS[name]))

    chat.run("one", show=None)

    assert texts_sent(model) == ["one"]
    assert [entry.text for entry in chat.entries(nb.MessageEntry)][:2] == [TRAPS[name]] * 2


# B61 B64 case 31
def test_previews_and_listings_stay_short_whatever_the_text(store: Store) -> None:
    for name, text in TRAPS.items():
        nb.open(name, store=store, model=ScriptedModel()).append(nb.user(text), Note(text=text))

    previews = [e.preview for name in TRAPS for e in store.load_entries(name)]
    titles = [summary.title for summary in store.list_sessions()]

    assert max(map(len, previews)) <= 120
    assert max(map(len, titles)) <= 120
    assert all(text.isprintable() or "\u200d" in text for text in previews)


LONE = "cut \ud83d here"
MENDED = "cut \ufffd here"


# B64
def test_half_a_character_from_a_stream_is_stored_mended_and_flagged(store: Store) -> None:
    model = ScriptedModel((TextDelta(LONE),), "ok")
    chat = nb.open("s", store=store, model=model)

    run = chat.run("one", show=None)
    chat.run("two", show=None)

    answer = chat.entries(nb.MessageEntry)[1]
    assert (answer.text, answer.is_repaired) == (MENDED, True)
    assert run.text == MENDED
    assert texts_sent(model) == ["one", MENDED, "two"]
    assert [e.is_repaired for e in chat.fork("child").path()] == [False, True, False, False]  # type: ignore[attr-defined]


# B64
@pytest.mark.parametrize("said", [LONE, nb.meta(LONE)], ids=["user", "meta"])
def test_half_a_character_in_input_is_stored_and_sent_mended(store: Store, said: object) -> None:
    model = ScriptedModel("ok")
    chat = nb.open("s", store=store, model=model)

    chat.run(said, show=None)

    assert texts_sent(model) == [MENDED]
    assert chat.entries(nb.MessageEntry)[0].is_repaired


# B64
def test_half_a_character_in_what_is_not_stored_reaches_a_provider_mended(
    store: Store, fake: FakeOpenAI
) -> None:
    chat = nb.open("s", store=store, model="openai/fake", system=LONE, api_base=fake.base_url)

    chat.run("one", nb.ephemeral(LONE), api_key="sk-x", show=None)

    sent = fake.requests[0].body["messages"]
    assert [message["content"] for message in sent] == [MENDED, "one", MENDED]


# B22 B64
@pytest.mark.parametrize(
    "trap", [LONE, "with \0 in it", "line \u2028 end"], ids=["half", "nul", "line end"]
)
def test_an_error_of_any_text_is_stored_and_told(store: Store, trap: str) -> None:
    model = ScriptedModel(("half", nb.errors.ModelError(trap)), "ok")
    chat = nb.open("s", store=store, model=model)

    with pytest.raises(nb.errors.ModelError, match=r"cut|with|line"):
        chat.run("one", show=None)

    mended = trap.replace("\ud83d", "\ufffd")
    ((_, end),) = store.load_runs("s")
    assert end is not None
    assert end.error == mended
    assert chat[2].message.reply.error == mended  # type: ignore[attr-defined]
    assert chat.run(show=None).text == "ok"


# B27 B64
def test_half_a_character_in_a_call_or_a_result_ends_no_run(store: Store) -> None:
    got: list[str] = []

    def echo(text: str) -> str:
        """Echo."""
        got.append(text)
        return LONE

    step = (CallDelta(0, "c\ud83d", "echo", '{"text": "' + LONE + '"}'),)
    model = ScriptedModel(step, "ok")
    chat = nb.open("s", store=store, model=model, tools=[echo])

    run = chat.run("one", show=None)

    assert run.outcome == "done"
    assert got == [MENDED]
    sent = model.requests[-1].messages
    assert sent[2].tool_results[0].text == MENDED
    assert sent[1].tool_calls[0].id == sent[2].tool_results[0].call_id


# B64
def test_half_a_character_in_a_custom_entry_is_mended(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("ok"))

    chat.append(Note(text=LONE))

    assert chat.entries(Note)[0].text == MENDED
