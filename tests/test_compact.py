"""Compact through real runs: a summary is added, and nothing is ever lost by it."""

from __future__ import annotations

import threading

import pytest

import nbdurable as nb
from nbdurable.blocks import Message, ToolCallBlock, ToolResultBlock, Usage
from nbdurable.lifecycle import SessionEvent
from nbdurable.models.base import CallDelta, ModelRequest
from nbdurable.models.scripted import ScriptedModel, calls, cut
from nbdurable.stores.base import Store


class Note(nb.CustomEntry):
    kind = "compact-note"
    text: str = ""


def look(at: int) -> str:
    """Look."""
    return f"seen {at}"


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [message.text for message in messages]


def of_turns(store: Store, count: int, *steps: object, **options: object) -> nb.Session:
    """Return a session of `count` turns; then come the given steps."""
    answers = [f"a{n}" for n in range(1, count + 1)]
    model = ScriptedModel(*answers, *steps)  # type: ignore[arg-type]
    chat = nb.open("s", store=store, model=model, **options)  # type: ignore[arg-type]
    for n in range(1, count + 1):
        chat.run(f"q{n}", show=None)
    return chat


def model_of(chat: nb.Session) -> ScriptedModel:
    assert isinstance(chat.settings.model, ScriptedModel)
    return chat.settings.model


def untouched(chat: nb.Session, count: int) -> bool:
    """Whether the session is still that of `count` turns, in memory and in the store."""
    stored = chat.image.store.load_entries(chat.id)
    return len(stored) == 2 * count and chat.leaf_id == stored[-1].id


# -- what is appended ------------------------------------------------------------------------------


# B49
def test_compact_appends_one_entry_and_touches_no_other(store: Store) -> None:
    chat = of_turns(store, 2, "They said things.")
    before = store.load_entries("s")

    entry = chat.compact()

    after = store.load_entries("s")
    assert after[:4] == before
    assert len(after) == 5
    assert isinstance(entry, nb.CompactionEntry)
    assert (entry.id, entry.parent_id) == (after[4].id, before[3].id)
    assert (entry.summary, entry.first_kept_id, entry.model) == (
        *("They said things.", None, "scripted"),
    )
    assert entry.usage == Usage(11, 7)
    assert entry.tokens_before
    assert chat.leaf_id == entry.id


# B49 B50
@pytest.mark.parametrize("keep_turns", [0, 1, 2])
def test_the_view_is_the_summary_and_the_turns_kept(store: Store, keep_turns: int) -> None:
    chat = of_turns(store, 3, "They said things.", "a4")
    chat.compact(keep_turns)

    chat.run("q4", show=None)

    summary, *kept = texts(model_of(chat).requests[-1].messages)
    turns = ["q1", "a1", "q2", "a2", "q3", "a3"][6 - 2 * keep_turns :]
    assert kept == [*turns, "q4"]
    assert "They said things." in summary
    assert "These are not the user's words" in summary
    shown = [getattr(entry, "text", "") for entry in chat.transcript()]
    assert shown[:7] == ["q1", "a1", "q2", "a2", "q3", "a3", "They said things."]


# B49
def test_a_model_and_a_prompt_of_its_own_make_the_summary(store: Store) -> None:
    chat = of_turns(store, 1)
    other = ScriptedModel("In verse.", name="poet")

    entry = chat.compact(prompt="Sum up in verse.", model=other)

    assert entry is not None
    assert (entry.text, entry.model) == ("In verse.", "poet")  # type: ignore[attr-defined]
    assert texts(other.requests[0].messages) == ["q1", "a1", "Sum up in verse."]
    assert model_of(chat).call_count == 1
    assert chat.model == "scripted"


# B49
@pytest.mark.parametrize(
    ("count", "keep_turns"), [(0, 0), (1, 1), (2, 5)], ids=["empty", "all kept", "more"]
)
def test_where_there_is_nothing_to_summarise_nothing_happens(
    store: Store, count: int, keep_turns: int
) -> None:
    told: list[SessionEvent] = []
    chat = of_turns(store, count, publisher=told.append)
    runs = len(store.load_runs("s"))

    assert chat.compact(keep_turns) is None

    assert model_of(chat).call_count == count
    assert len(store.load_entries("s")) == 2 * count
    assert len(store.load_runs("s")) == runs
    assert [event.type for event in told] == ["session_init"]


# B49
def test_compacting_twice_in_a_row_does_nothing_the_second_time(store: Store) -> None:
    chat = of_turns(store, 2, "First.", "Second.")
    chat.compact()

    again = chat.compact()

    assert again is None
    assert len(store.load_entries("s")) == 5


# -- the cut ---------------------------------------------------------------------------------------


# B49
def test_meta_directly_before_a_user_message_belongs_to_its_turn(store: Store) -> None:
    chat = of_turns(store, 1, "a2", "A summary.", "a3")
    chat.run(nb.meta("Use metres."), "q2", show=None)
    chat.compact(keep_turns=1)

    chat.run("q3", show=None)

    assert texts(model_of(chat).requests[-1].messages)[1:] == ["Use metres.", "q2", "a2", "q3"]


# B49 case 18
@pytest.mark.parametrize("keep_turns", [0, 1])
def test_the_cut_never_parts_a_call_from_its_result(store: Store, keep_turns: int) -> None:
    steps = [calls(("look", {"at": n})) for n in range(3)]
    model = ScriptedModel("a1", *steps, "done", "A summary.", "ok")
    chat = nb.open("s", store=store, model=model, tools=[look])
    chat.run("q1", show=None)
    chat.run("Look thrice.", show=None)
    before = store.load_entries("s")
    chat.compact(keep_turns)

    chat.run("next", show=None)

    sent = model.requests[-1].messages
    asked = [call.id for message in sent for call in message.tool_calls]
    answered = [result.call_id for message in sent for result in message.tool_results]
    assert asked == answered
    assert len(asked) == 3 * keep_turns
    assert sent[1].role == "user"
    assert store.load_entries("s")[: len(before)] == before


# B49
def test_a_user_turn_that_waits_for_an_answer_is_never_swallowed(store: Store) -> None:
    chat = of_turns(store, 2, "A summary.", "a3")
    chat.append("q3")
    chat.compact()

    run = chat.run(show=None)

    assert run.text == "a3"
    assert texts(model_of(chat).requests[-1].messages)[1:] == ["q3"]


# B22 B49
def test_a_turn_whose_answer_failed_is_not_swallowed_either(store: Store) -> None:
    chat = of_turns(store, 1, cut("half"), "A summary.", "a2")
    with pytest.raises(nb.errors.ModelError, match="broke off"):
        chat.run("q2", show=None)

    chat.compact()
    chat.run("Go on.", show=None)

    assert texts(model_of(chat).requests[-1].messages)[1:] == ["q2", "half", "Go on."]


# -- again -----------------------------------------------------------------------------------------


# B50
def test_a_second_compaction_summarises_the_first_summary(store: Store) -> None:
    chat = of_turns(store, 2, "First summary.", "a3", "Second summary.", "a4")
    chat.compact()
    chat.run("q3", show=None)
    chat.compact()

    chat.run("q4", show=None)

    first, *rest = texts(model_of(chat).requests[4].messages)
    assert "First summary." in first
    assert rest[:2] == ["q3", "a3"]
    sent = texts(model_of(chat).requests[-1].messages)
    assert "Second summary." in sent[0]
    assert "First summary." not in " ".join(sent)
    assert sent[1:] == ["q4"]


# B50
def test_a_larger_number_of_turns_never_brings_back_what_was_summarised(store: Store) -> None:
    chat = of_turns(store, 3, "First.", "a4", "Second.", "a5")
    chat.compact(keep_turns=1)
    chat.run("q4", show=None)

    chat.compact(keep_turns=9)
    chat.run("q5", show=None)

    sent = " ".join(texts(model_of(chat).requests[-1].messages))
    assert "q1" not in sent
    assert "q2" not in sent
    assert "q3" in sent


# B52
def test_branching_before_a_compaction_gives_the_full_view_and_onto_it_the_short_one(
    store: Store,
) -> None:
    chat = of_turns(store, 2, "A summary.")
    chat.compact()
    short = chat.messages()

    chat.branch(4)
    full = chat.messages()
    chat.branch(5)

    assert texts(full) == ["q1", "a1", "q2", "a2"]
    assert chat.messages() == short
    assert len(short) == 1


# B52
def test_a_first_kept_entry_that_is_not_on_the_path_leaves_summary_and_what_follows(
    store: Store,
) -> None:
    chat = of_turns(store, 2, "A summary.", "a3")
    chat.compact(keep_turns=1)
    (*_, summary) = store.load_entries("s")  # it keeps from entry #3 on
    elsewhere = summary._replace(
        id="0190b6d4-0000-7000-8000-000000000002",
        parent_id=chat[2].id,
    )
    store.append("s", [elsewhere])

    chat.run("q3", at=6, show=None)

    summary, *rest = texts(model_of(chat).requests[-1].messages)
    assert "A summary." in summary
    assert rest == ["q3"]


# -- the summariser --------------------------------------------------------------------------------


# B51
def test_the_summariser_gets_no_tools_and_runs_none(store: Store) -> None:
    def never(at: int) -> None:
        raise AssertionError("was executed")

    step = (CallDelta(0, "c9", "look", '{"at":1}'), "A summary.")
    chat = of_turns(store, 1, step, tools=[nb.tool(never, name="look")], system="Be brief.")
    asked = nb.assistant(ToolCallBlock("c1", "look", '{"at": 5}'))
    chat.append("q2", asked, nb.MessageEntry(message=Message("tool", (ToolResultBlock("c1"),))))
    chat.append(nb.assistant("done"))

    entry = chat.compact()

    request: ModelRequest = model_of(chat).requests[-1]
    assert entry is not None
    assert request.tools == ()
    assert request.system != "Be brief."
    assert not any(m.tool_calls or m.tool_results for m in request.messages)
    assert '[called tool look with {"at": 5}]' in " ".join(texts(request.messages))


# B51
@pytest.mark.parametrize(
    "step", ["", " \n", (CallDelta(0, "c", "look", "{}"),)], ids=["empty", "blank", "only a call"]
)
def test_an_empty_summary_is_refused(store: Store, step: object) -> None:
    told: list[SessionEvent] = []
    chat = of_turns(store, 1, step, publisher=told.append)

    with pytest.raises(nb.errors.RunError, match="'scripted' gave an empty summary; nothing was"):
        chat.compact()

    assert untouched(chat, 1)
    assert [event.type for event in told] == ["session_init"]


# B51
@pytest.mark.parametrize(
    "step", [nb.errors.ModelError("gone"), cut("half a summ")], ids=["at once", "in the middle"]
)
def test_a_summary_that_fails_changes_nothing(store: Store, step: object) -> None:
    told: list[SessionEvent] = []
    chat = of_turns(store, 1, step, "A summary.", publisher=told.append)

    with pytest.raises(nb.errors.ModelError, match=r"gone|broke off"):
        chat.compact()

    assert untouched(chat, 1)
    assert [event.type for event in told] == ["session_init"]
    assert chat.compact() is not None


# B7 B51
def test_without_a_model_compact_says_so_and_stores_nothing(store: Store) -> None:
    class Absent(ScriptedModel):
        def check(self, params: object = None) -> None:
            raise nb.errors.ModelError("no key for 'absent'; set it", reason="unavailable")

    chat = of_turns(store, 1)
    runs = store.load_runs("s")

    with pytest.raises(nb.errors.ModelError, match="no key for 'absent'"):
        chat.compact(model=Absent("x"))

    assert untouched(chat, 1)
    assert store.load_runs("s") == runs


# B51 B54
def test_a_compaction_that_is_cancelled_changes_nothing(store: Store) -> None:
    never = threading.Event()
    chat = of_turns(store, 1, ("half", never))
    failed: list[BaseException] = []

    def compact() -> None:
        try:
            chat.compact()
        except nb.errors.NbDurableError as exc:
            failed.append(exc)

    thread = threading.Thread(target=compact)
    thread.start()
    model_of(chat).wait_for_request(2)
    chat.close()
    thread.join(30)

    assert "cancelled" in str(failed[0])
    assert len(store.load_entries("s")) == 2


# B18 B51
def test_while_a_summary_is_made_the_leaf_cannot_be_moved(store: Store) -> None:
    refused: list[str] = []

    def summary(request: ModelRequest) -> str:
        for verb in (lambda: chat.branch(1), lambda: chat.append("x"), lambda: chat.run("y")):
            with pytest.raises(nb.errors.RunActive, match="going on"):
                verb()
            refused.append("yes")
        chat.append(Note(text="meanwhile"))
        return "A summary."

    chat = of_turns(store, 1, summary)

    entry = chat.compact()

    assert entry is not None
    assert refused == ["yes"] * 3
    assert [e.kind for e in chat.path()] == ["message", "message", "compact-note", "compaction"]


# B51
def test_when_the_leaf_moved_meanwhile_the_summary_is_not_written(store: Store) -> None:
    def summary(request: ModelRequest) -> str:
        chat.leaf.id = chat[2].id  # as no verb can, while a summary is made
        return "A summary."

    chat = of_turns(store, 2, summary)

    with pytest.raises(nb.errors.RunError, match="the leaf moved while the summary was made"):
        chat.compact()

    assert len(store.load_entries("s")) == 4
