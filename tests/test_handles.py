"""The life of a handle: closing, sharing, racing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from new_process import in_new_process

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores import Store
from nbdurable.stores.duckdb import DuckDBStore


class Jot(nb.CustomEntry):
    kind = "jot in a test of handles"
    text: str = ""


def opened(store: Store | str, model: ScriptedModel) -> nb.Session:
    return nb.open("s", store=store, model=model)


def half_answered(store: Store | str) -> tuple[nb.Session, nb.Run]:
    """Return a session whose run has said half of its answer and waits."""
    chat = opened(store, ScriptedModel(("half an answer", threading.Event())))
    run = chat.run("q", wait=False)
    said = ""
    for piece in run.stream():
        said += piece
        if said == "half an answer":
            break
    return chat, run


FREE = (
    "import nbdurable as nb\n"
    "with nb.open('s', store='s.duckdb', model='local') as chat:\n"
    "    print(len(chat.entries()))"
)


# -- close (B54) -------------------------------------------------------------------------------


# B54
def test_closing_again_does_nothing(store: Store, model: ScriptedModel) -> None:
    chat, other = opened(store, model), opened(store, model)

    chat.close()
    chat.close()

    other.append("still open")
    assert len(other.entries()) == 1


VERBS: dict[str, Callable[[nb.Session], object]] = {
    "run": lambda chat: chat.run("q", show=None),
    "append": lambda chat: chat.append("q"),
    "append nothing": lambda chat: chat.append(),
    "branch": lambda chat: chat.branch(None),
    "resume": lambda chat: chat.resume(),
    "fork": lambda chat: chat.fork(),
    "compact": lambda chat: chat.compact(),
    "rerun": lambda chat: chat.rerun(1, show=None),
    "edit": lambda chat: chat.edit(1, "x", show=None),
    "entries": lambda chat: chat.entries(),
    "path": lambda chat: chat.path(),
    "leaves": lambda chat: chat.leaves(),
    "tree": lambda chat: chat.tree(),
    "runs": lambda chat: chat.runs(),
    "messages": lambda chat: chat.messages(),
    "transcript": lambda chat: chat.transcript(),
    "preview": lambda chat: chat.preview("q"),
    "context": lambda chat: chat.context(),
    "item": lambda chat: chat[1],
}


# B54
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_after_close_says_so(store: Store, model: ScriptedModel, verb: str) -> None:
    chat = opened(store, model)
    chat.run("q", show=None)
    chat.close()

    with pytest.raises(nb.errors.SessionClosed, match="'s' was closed on this handle; open it ag"):
        VERBS[verb](chat)

    assert len(store.load_entries("s")) == 2 and model.call_count == 1


# B54
def test_a_run_of_a_closed_handle_cannot_be_continued(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    run = chat.run("q", show=None)
    chat.close()

    assert run.text == "A scripted answer."
    with pytest.raises(nb.errors.SessionClosed, match="open it again by its id"):
        run.then("more", show=None)


# B54
def test_a_closed_handle_still_says_what_it_was(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    run = chat.run("q", show=None)
    chat.close()

    assert (chat.id, chat.model, chat.leaf_id) == ("s", "scripted", run.leaf_id)
    assert "closed" in repr(chat)


# B54
def test_a_closed_session_opens_again_by_its_id(model: ScriptedModel) -> None:
    with opened("s.duckdb", model) as chat:
        run = chat.run("q", show=None)

    with opened("s.duckdb", model) as again:
        assert again.leaf_id == run.leaf_id
        assert again.run("more", show=None).text == "A scripted answer."


# B54
def test_leaving_a_block_by_an_error_closes(store: Store, model: ScriptedModel) -> None:
    with pytest.raises(ZeroDivisionError), opened(store, model) as chat:
        raise ZeroDivisionError

    with pytest.raises(nb.errors.SessionClosed, match="was closed"):
        chat.entries()


# B54
def test_closing_in_mid_run_keeps_the_half_answer(store: Store) -> None:
    chat, run = half_answered(store)

    chat.close()

    assert run.is_done and run.outcome == "aborted"
    again = opened(store, ScriptedModel("whole"))
    partial = again[2]
    assert isinstance(partial, nb.MessageEntry)
    assert (partial.text, partial.message.stop_reason) == ("half an answer", "aborted")
    assert again.leaf_id == partial.id
    assert again.run(show=None).entries[0].parent_id == again[1].id


# B54
def test_closing_the_last_handle_in_mid_run_keeps_the_half_answer_in_the_file() -> None:
    chat, _ = half_answered("s.duckdb")
    chat.close()

    found = in_new_process(
        "import json, nbdurable as nb\n"
        "chat = nb.open('s', store='s.duckdb', model='local')\n"
        "print(json.dumps([[e.text for e in chat.entries()], chat.runs()[0].outcome]))"
    )

    assert found == [["q", "half an answer"], "aborted"]


# B54
def test_closing_cancels_detached_runs_too(store: Store) -> None:
    chat = opened(store, ScriptedModel(("half", threading.Event())))
    runs = [chat.run("q", wait=False, move=False) for _ in range(3)]
    for run in runs:
        next(event for event in run if event.type == "message_update")

    chat.close()

    assert [run.outcome for run in runs] == ["aborted"] * 3
    assert [row.stop_reason for row in store.load_entries("s")].count("aborted") == 3


# B54
def test_closing_leaves_the_runs_of_other_handles(store: Store) -> None:
    go = threading.Event()
    model = ScriptedModel(("half", go, " whole"))
    mine, other = opened(store, model), opened(store, model)
    run = other.run("q", wait=False)
    model.wait_for_request()

    mine.close()
    go.set()

    assert run.wait().text == "half whole"


# B54
def test_closing_leaves_a_finished_run_as_it_was(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    run = chat.run("q", show=None)
    chat.close()

    assert run.outcome == "done"
    assert [end and end.outcome for _, end in store.load_runs("s")] == ["done"]


# -- who holds the file (B54, B1) --------------------------------------------------------------


# B54
def test_the_last_handle_frees_the_file(model: ScriptedModel) -> None:
    one, other = opened("s.duckdb", model), nb.open("t", store="s.duckdb", model=model)
    one.close()
    other.append("the file is still held")
    other.close()

    assert in_new_process(FREE) == 0


# B54
def test_a_fork_holds_the_file_too(model: ScriptedModel) -> None:
    with opened("s.duckdb", model) as chat:
        chat.append("q")
        child = chat.fork("child")

    child.append("on")
    child.close()

    assert in_new_process(FREE) == 1


# B54
def test_a_store_of_the_callers_stays_open(store: Store, model: ScriptedModel) -> None:
    with opened(store, model) as chat:
        chat.append("q")

    assert len(store.load_entries("s")) == 1


# B54 B5
def test_a_handle_outlives_the_store_object_that_another_was_opened_with(
    model: ScriptedModel,
) -> None:
    mine = DuckDBStore("s.duckdb")
    one, other = opened(mine, model), opened("s.duckdb", model)
    assert one.image is other.image

    one.close()
    mine.close()
    other.run("q", show=None)
    other.close()

    assert in_new_process(FREE) == 2


# B54 B5
def test_a_handle_opened_by_path_leaves_the_callers_store_open(model: ScriptedModel) -> None:
    mine = DuckDBStore("s.duckdb")
    other, one = opened("s.duckdb", model), opened(mine, model)
    assert one.image is other.image

    other.close()
    one.run("q", show=None)
    one.close()
    assert len(mine.load_entries("s")) == 2
    mine.close()

    assert in_new_process(FREE) == 2


# B54 case 28
def test_a_second_opening_in_a_process_shares_the_file_under_any_path(
    model: ScriptedModel, tmp_path: Path
) -> None:
    with opened("s.duckdb", model) as chat:
        chat.append("q")
        Path("link.duckdb").symlink_to("s.duckdb")
        for path in (str(Path("s.duckdb").resolve()), "./s.duckdb", "link.duckdb"):
            with opened(path, model) as again:
                assert again.image is chat.image

        chat.append("still held")


# -- races (B5, B10, B18) ----------------------------------------------------------------------


# B5 B18
@pytest.mark.parametrize("handles", [1, 2])
def test_of_racing_runs_one_begins_and_the_others_are_refused(store: Store, handles: int) -> None:
    go = threading.Event()
    model = ScriptedModel((go, "answer"))
    chats = [opened(store, model) for _ in range(handles)]
    start = threading.Barrier(6)
    begun: list[nb.Run] = []
    refused: list[nb.errors.RunActive] = []

    def run(chat: nb.Session) -> None:
        start.wait()
        try:
            begun.append(chat.run("q", wait=False))
        except nb.errors.RunActive as exc:
            refused.append(exc)

    threads = [threading.Thread(target=run, args=(chats[at % handles],)) for at in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    go.set()

    assert (len(begun), len(refused)) == (1, 5)
    assert all(exc.run is begun[0] for exc in refused)
    begun[0].wait()
    assert len(chats[0].entries()) == 2 and model.call_count == 1


# B5 B10
def test_a_run_that_waited_for_its_model_goes_on_from_where_the_leaf_is(store: Store) -> None:
    class Slow(ScriptedModel):
        def check(self, params: object = None) -> None:
            checking.set()
            assert go.wait(10)

    checking, go = threading.Event(), threading.Event()
    chat = opened(store, ScriptedModel("quick answer"))
    slow = threading.Thread(target=lambda: chat.run("late", model=Slow("late answer"), show=None))
    slow.start()
    assert checking.wait(10)
    quick = chat.run("quick", show=None)
    go.set()
    slow.join()

    assert [entry.text for entry in chat.path() if isinstance(entry, nb.MessageEntry)] == [
        "quick",
        "quick answer",
        "late",
        "late answer",
    ]
    assert chat[3].parent_id == quick.leaf_id and store.load_moves("s") == []


# B5 B18
def test_the_next_run_begins_as_soon_as_one_has_ended(store: Store, model: ScriptedModel) -> None:
    one, other = opened(store, model), opened(store, model)

    for _ in range(5):
        one.run("q", wait=False).wait()
        other.resume()
        other.run("q", wait=False).wait()
        one.resume()

    assert [entry.n for entry in one.path()] == [*range(1, 21)]


# B5 B18
def test_a_run_that_is_refused_frees_the_session(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    with pytest.raises(nb.errors.EntryNotFound, match="nosuch"):
        chat.run("q", at="nosuch", show=None)
    with pytest.raises(nb.errors.RunError, match="nothing"):
        chat.run(show=None)

    assert chat.run("q", show=None).outcome == "done"


# case 24 B22
def test_an_interrupt_in_mid_answer_keeps_prompt_and_half_answer(store: Store) -> None:
    chat = opened(store, ScriptedModel(("one two three", KeyboardInterrupt()), "whole"))

    with pytest.raises(KeyboardInterrupt):
        chat.run("q", show=None)

    question, partial = chat.entries(nb.MessageEntry)
    assert (question.text, partial.text) == ("q", "one two three")
    assert partial.message.stop_reason == "aborted" and chat.leaf_id == partial.id
    assert chat.run(show=None).text == "whole"


def test_completion_offers_verbs_and_not_what_modules_share(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("a"))

    offered = {name for name in dir(chat) if not name.startswith("_")}

    assert {"run", "grid", "branch", "rerun", "label", "df", "leaf_id", "model", "close"} < offered
    assert not {"image", "held", "put", "begin_cell", "seen_position", "tell"} & offered
