"""`compact_above`: a run that would send too much compacts first, and is a run like any other."""

from __future__ import annotations

import threading

import pytest

import nbdurable as nb
from nbdurable.blocks import Message, Usage
from nbdurable.lifecycle import SessionEvent
from nbdurable.models.base import RetryNotice
from nbdurable.models.scripted import ScriptedModel, cut
from nbdurable.stores.base import Store

LONG = "word " * 400  # 500 tokens


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [message.text for message in messages]


def long_session(store: Store, *steps: object, **options: object) -> nb.Session:
    """Return a session with one long answer, opened again with `compact_above`."""
    nb.open("s", store=store, model=ScriptedModel(LONG)).run("q1", show=None)
    model = ScriptedModel(*steps)  # type: ignore[arg-type]
    return nb.open("s", store=store, model=model, compact_above=300, **options)  # type: ignore[arg-type]


def model_of(chat: nb.Session) -> ScriptedModel:
    assert isinstance(chat.settings.model, ScriptedModel)
    return chat.settings.model


# B52
def test_a_run_that_would_exceed_the_limit_compacts_first(store: Store) -> None:
    chat = long_session(store, "A summary.", "a2")

    run = chat.run("q2", show=None)

    assert run.text == "a2"
    assert [entry.kind for entry in chat.path()] == ["message"] * 2 + ["compaction"] + [
        "message"
    ] * 2
    summary, *rest = texts(model_of(chat).requests[1].messages)
    assert "A summary." in summary
    assert rest == ["q2"]


# B52
def test_compacting_by_itself_is_off_by_default(store: Store) -> None:
    long_session(store).close()
    model = ScriptedModel("a2")
    chat = nb.open("s", store=store, model=model)

    chat.run("q2", show=None)

    assert texts(model.requests[0].messages) == ["q1", LONG, "q2"]
    assert chat.entries(nb.CompactionEntry) == []


# B52
@pytest.mark.parametrize(
    ("input", "compactions"), [("short", 0), ("x" * 2_000, 1), (nb.ephemeral("x" * 2_000), 1)]
)
def test_the_input_counts_and_below_the_limit_nothing_is_compacted(
    store: Store, input: object, compactions: int
) -> None:
    nb.open("s", store=store, model=ScriptedModel("a1")).run("q1", show=None)
    model = ScriptedModel("ok")
    chat = nb.open("s", store=store, model=model, compact_above=300)

    chat.run("q2", input, show=None)

    assert len(chat.entries(nb.CompactionEntry)) == compactions
    assert model.call_count == 1 + compactions


# B52
def test_where_there_is_nothing_to_summarise_the_run_goes_on_as_it_is(store: Store) -> None:
    model = ScriptedModel("ok")
    chat = nb.open("s", store=store, model=model, compact_above=10)

    chat.run(LONG, show=None)

    assert model.call_count == 1
    assert len(chat.path()) == 2


# B14 B52
def test_the_summary_is_no_part_of_what_the_run_streams(store: Store) -> None:
    notice = RetryNotice(1, 0.0, "busy")
    chat = long_session(store, (notice, "A summary."), "a2")

    run = chat.run("q2", wait=False, show=None)

    assert "".join(run.stream()) == "a2"
    assert run.events[0].type == "agent_start"
    assert [type for type in (e.type for e in run.events) if type != "message_update"] == [
        *("agent_start", "step_start", "message_start", "message_end", "step_end", "agent_end")
    ]
    assert [entry.id for entry in run.entries] == [entry.id for entry in chat.path()[3:]]


# B52 B56
def test_the_run_is_recorded_from_the_leaf_before_the_compaction(store: Store) -> None:
    chat = long_session(store, "A summary.", "a2")

    run = chat.run("q2", show=None)

    record, end = store.load_runs("s")[-1]
    assert record.id == run.run_id
    assert record.start_leaf_id == chat[2].id
    assert record.input_ids == (chat[4].id,)
    assert end is not None
    assert end.leaf_id == chat[5].id


# B14 B52
def test_the_end_of_the_run_counts_what_the_summary_took(store: Store) -> None:
    chat = long_session(store, "A summary.", "a2")

    run = chat.run("q2", show=None)

    assert run.events[-1].usage == Usage(11, 7) + Usage(11, 7)


# B51 B52
@pytest.mark.parametrize("step", [cut("half a summ"), "", cut(RetryNotice(1, 0.0, "x"))])
def test_a_summary_that_fails_ends_the_run_and_changes_nothing(
    store: Store, step: object, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[SessionEvent] = []
    chat = long_session(store, step, "A summary.", "a2", publisher=told.append)
    runs = store.load_runs("s")

    with pytest.raises(nb.errors.RunError, match=r"broke off|empty summary"):
        chat.run("q2", show=None)

    assert len(store.load_entries("s")) == 2
    assert store.load_runs("s") == runs
    assert [event.type for event in told] == ["session_init"]
    assert caplog.records == []
    assert chat.run("q2", show=None).text == "a2"


# B23 B52
def test_cancelling_while_the_summary_is_made_changes_nothing(store: Store) -> None:
    never = threading.Event()
    chat = long_session(store, ("half", never), "A summary.", "a2")
    run = chat.run("q2", wait=False, show=None)
    model_of(chat).wait_for_request()

    run.cancel()
    run.wait()

    assert run.outcome == "aborted"
    assert len(store.load_entries("s")) == 2
    assert chat.run("q2", show=None).text == "a2"


# B52 B53
def test_the_publisher_hears_of_it_and_may_call_back(store: Store) -> None:
    told: list[tuple[str, str | None, int]] = []

    def publisher(event: SessionEvent) -> None:
        told.append((event.type, event.entry_id, len(store.load_entries("s"))))
        if event.type == "session_compacted":
            aside = chat.run("aside", at=1, move=False, show=None)
            told.append((aside.text, None, 0))

    chat = long_session(store, "A summary.", "aside", "a2", publisher=publisher)

    run = chat.run("q2", show=None)

    assert run.text == "a2"
    assert told == [
        ("session_init", None, 2),
        ("session_compacted", chat[3].id, 3),
        ("aside", None, 0),
    ]


# B18 B52
def test_a_run_beside_the_leaf_compacts_nothing(store: Store) -> None:
    chat = long_session(store, "a2")

    chat.run("q2", move=False, show=None)

    assert chat.entries(nb.CompactionEntry) == []
    assert texts(model_of(chat).requests[0].messages) == ["q1", LONG, "q2"]
