"""A shown tree is what the session is, whoever changes it and however."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from treeing import Page

import nbdurable as nb
from nbdurable.ids import IdMaker
from nbdurable.models.scripted import ScriptedModel, calls, thinking
from nbdurable.notebook.tree import poller
from nbdurable.stored import Annotation, StoredEntry
from nbdurable.stores.base import Store
from nbdurable.stores.memory import MemoryStore


def opened(store: Store, *steps: object, **options: Any) -> nb.Session:
    given = steps or ("An answer.",)
    model = ScriptedModel(*given, cost_usd=0.25)  # type: ignore[arg-type]
    return nb.open("s", store=store, model=model, **options)


class Note(nb.CustomEntry):
    kind = "tree-note"
    text: str = ""


# -- equal to what Python knows --------------------------------------------------------------------

VERBS: dict[str, Callable[[nb.Session, int], object]] = {
    "run": lambda chat, n: chat.run(f"Question {n}", show=None),
    "append": lambda chat, n: chat.append(nb.user(f"Q{n}"), nb.assistant(f"A{n}")),
    "note": lambda chat, n: chat.append(Note(text=f"note {n}")),
    "branch": lambda chat, n: chat.branch(n or None),
    "rerun": lambda chat, n: chat.rerun(n, show=None),
    "edit": lambda chat, n: edit(chat, n),
    "sample": lambda chat, n: chat.sample(2, f"Sample {n}", show=None),
    "label": lambda chat, n: chat.label(n, f"label {n}"),
    "unlabel": lambda chat, n: chat.label(n, None),
    "rate": lambda chat, n: chat.rate(n, n / 2, name="tone"),
    "prefer": lambda chat, n: chat.prefer(n, 1),
    "compact": lambda chat, n: chat.compact(),
}


def edit(chat: nb.Session, n: int) -> object:
    is_answer = getattr(chat[n], "role", "") == "assistant"
    return chat.edit(n, f"edited {n}", **({} if is_answer else {"show": None}))


# case 45
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(verbs=st.lists(st.tuples(st.sampled_from(sorted(VERBS)), st.integers(0, 30)), max_size=12))
def test_the_page_and_a_fresh_view_know_the_same_after_any_verbs(
    verbs: list[tuple[str, int]],
) -> None:
    chat = opened(MemoryStore())
    with Page(chat) as page:
        for verb, number in verbs:
            n = number % (chat.image.count + 1)
            try:
                VERBS[verb](chat, n)
            except nb.errors.NbDurableError:
                continue

        shown = page.settled()
        with Page(chat) as fresh:
            assert {**fresh.settled(), "previews": 0} == {**shown, "previews": 0}
        assert shown == as_python_knows(chat, shown)
    chat.close()


def as_python_knows(chat: nb.Session, shown: dict[str, Any]) -> dict[str, Any]:
    """Return a state with all that the session's own verbs tell put in place of what is shown."""
    nodes = {node.id: node for node in chat.tree().nodes}
    marks = chat.image.annotations().marks()
    shown = json.loads(json.dumps(shown))
    columns, head = shown["columns"], shown["head"]
    columns["parent"] = [
        nodes[node.parent_id].n if node.parent_id else 0 for node in nodes.values()
    ]
    columns["cost"] = [node.cost_usd for node in nodes.values()]
    columns["role"] = [shown["roles"].index(node.role or node.kind) for node in nodes.values()]
    names = {exp.id: at for at, exp in enumerate(chat.experiments())}
    for at, experiment in enumerate(chat.experiments()):
        done = sum(cell.state == "done" for cell in experiment)
        shown["experiments"][at] |= {
            "id": experiment.id, "name": experiment.name, "runs": len(experiment), "done": done,
            "cost_usd": experiment.cost, "state": "done",
        }  # fmt: skip
    of_run = {
        record.id: names.get(record.experiment_id or "", -1)
        for record, _ in chat.image.store.load_runs(chat.id)
    }
    for at, node in enumerate(nodes.values()):
        if node.run_id is not None:
            columns["exp"][at] = of_run[node.run_id]
    leaf_id = chat.leaf_id
    head |= {
        "leaf": nodes[leaf_id].n if leaf_id else 0,
        "entries": len(nodes),
        "branches": len(chat.leaves()),
    }
    for entry_id, said in marks.items():
        if said.labels or said.ratings:
            shown["marks"][str(nodes[entry_id].n)]["labels"] = list(said.labels)
    return shown


# case 45
def test_a_label_deep_in_the_tree_reaches_the_page(store: Store) -> None:
    chat = opened(store)
    for number in range(5):
        chat.run(f"Q{number}", show=None)
    with Page(chat) as page:
        chat.label(3, "here")
        page.until(lambda: page.state["marks"].get("3", {}).get("labels") == ["here"])
        chat.label(3, None)
        page.until(lambda: "3" not in page.state["marks"])
    chat.close()


# B41
def test_orphans_rings_and_late_parents_are_shown_where_the_tree_has_them() -> None:
    store = MemoryStore()
    chat = opened(store)
    chat.append(nb.user("Q"))
    (first,) = store.load_entries("s")
    chat.image._take([made(first, 2, "lost", "nowhere"), made(first, 3, "child", "late")])
    with Page(chat) as page:
        flags = [*page.settled()["columns"]["flags"]]
        chat.image._take([made(first, 4, "late", first.id), made(first, 5, "ring", "ring")])
        columns = page.settled()["columns"]

    assert flags == [0, 16, 16]
    assert columns["parent"] == [0, 0, 4, 1, 0]
    assert columns["flags"] == [0, 16, 0, 0, 16]
    chat.close()


def made(like: StoredEntry, n: int, entry_id: str, parent_id: str) -> StoredEntry:
    return like._replace(id=entry_id, parent_id=parent_id, n=n, seq=n)


def test_flags_tell_what_an_entry_is_without_its_payload(store: Store) -> None:
    def fail() -> str:
        """Fail."""
        raise ValueError("no")

    chat = opened(store, calls(("fail", {})), "Sorry.", tools=[fail])
    chat.run(nb.meta("rules"), "Go", show=None)
    chat.edit(5, "I wrote this.")
    with Page(chat) as page:
        flags = page.settled()["columns"]["flags"]
    meta, calling, wrong, human = 1, 8, 64, 32

    assert flags == [meta, 0, calling, wrong, 0, human]
    chat.close()


# -- what runs -------------------------------------------------------------------------------------


# B17
@pytest.mark.parametrize("started", ["here", "other handle", "detached"])
def test_a_run_streams_in_the_tree_wherever_it_was_started(store: Store, started: str) -> None:
    go = threading.Event()
    chat = opened(store, [thinking("Hm."), "Half", go, " whole."])
    other = opened(store, "unused") if started == "other handle" else chat
    other.settings = chat.settings
    with Page(chat) as page:
        run = other.run("Q", wait=False, show=None, move=started != "detached")
        page.until(lambda: [row["text"] for row in page.state["live"]] == ["Half"])
        (row,) = page.state["live"]
        told = (row["run"], row["state"], row["parent"], row["model"], row["thinking"])
        go.set()
        page.until(lambda: page.state["live"] == [] and len(page.state["columns"]["at"]) == 2)
        leaf = page.settled()["head"]["leaf"]

    assert told == (run.run_id, "streaming", 1, "scripted", False)
    assert row["ttft"] >= 0.0
    assert leaf == (2 if started == "here" else 0)
    chat.close()
    other.close()


def test_tools_tokens_and_cost_tick_while_a_run_goes_on(store: Store) -> None:
    go, is_in = threading.Event(), threading.Event()

    def look() -> str:
        """Look."""
        is_in.set()
        go.wait(10)
        return "seen"

    chat = opened(store, calls(("look", {}), text="Looking."), "Done.", tools=[look])
    with Page(chat) as page:
        chat.run("Q", wait=False, show=None)
        assert is_in.wait(10)
        page.until(lambda: any(row["state"] == "tool" for row in page.state["live"]))
        row = dict(page.state["live"][0])
        go.set()
        page.until(lambda: not page.state["live"])

    assert (row["note"], row["tokens"], row["cost_usd"], row["text"]) == ("look", 18, 0.25, "")
    assert row["parent"] == 2
    chat.close()


# B22
def test_an_error_stands_at_its_entry_until_it_is_answered(store: Store) -> None:
    chat = opened(store, nb.errors.ModelError("the provider is tired"), "Better now.")
    with Page(chat) as page:
        chat.run("Q", wait=False, show=None)
        page.until(lambda: page.state["notes"] == {"1": "the provider is tired"})
        with Page(chat) as again:
            reopened = again.state["notes"]
        page.act("goon", n=1)
        page.until(lambda: page.state["notes"] == {} and page.state["head"]["leaf"] == 2)
        page.settled()
    with Page(chat) as later:
        assert later.state["notes"] == {}

    assert reopened == {"1": "the provider is tired"}
    chat.close()


# B37
def test_a_plan_that_cannot_be_read_keeps_the_tree_from_nothing_else(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    chat = opened(store)
    chat.sample(2, "Q", name="wording", show=None)
    (plan,) = store.load_experiments("s")
    newer = replace(plan, id=IdMaker()(), name="newer", plan_json='{"version": 9}')
    with Page(chat) as page:
        store.save_experiment(newer)
        chat.label(1, "here")
        page.until(lambda: page.state["marks"].get("1", {}).get("labels") == ["here"])
    with Page(chat) as fresh:
        assert [row["name"] for row in fresh.settled()["experiments"]] == ["wording"]
    chat.close()

    assert "cannot be read: KeyError" in caplog.text


# B11
def test_one_tree_that_cannot_look_keeps_no_other_from_looking(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(poller, "POLL_S", 0.01)
    looked, go = threading.Event(), threading.Event()

    class Broken:
        def poll(self) -> None:
            looked.set()
            raise OSError("stale")

    broken = Broken()
    poller.POLLER.add(broken)
    assert looked.wait(10)

    class Sound:
        def poll(self) -> None:
            go.set()

    sound = Sound()
    poller.POLLER.add(sound)

    assert go.wait(10)
    poller.POLLER.discard(broken)
    poller.POLLER.discard(sound)
    assert "stale" in caplog.text


# B43
def test_an_experiment_is_one_row_that_counts_what_is_done(store: Store) -> None:
    go = threading.Event()
    chat = opened(store, [go, "One."])
    with Page(chat) as page:
        chat.sample(3, "Q", name="wording", wait=False, show=None)
        page.until(lambda: len(page.state["live"]) == 3)
        page.until(lambda: page.state["experiments"][0]["state"] == "running")
        began = dict(page.state["experiments"][0])
        go.set()
        page.until(lambda: page.state["experiments"][0]["state"] == "done")
        ended, columns = page.settled()["experiments"][0], page.state["columns"]

    assert (began["name"], began["at"], began["runs"], began["done"]) == ("wording", 0, 3, 0)
    assert (ended["done"], ended["failed"], ended["cost_usd"]) == (3, 0, 0.75)
    assert columns["exp"] == [0, 0, 0, 0]
    chat.close()


# B22 B43
def test_a_cancelled_run_of_an_experiment_is_not_counted_as_failed(store: Store) -> None:
    go = threading.Event()
    chat = opened(store, [go, "One."])
    with Page(chat) as page:
        experiment = chat.sample(2, "Q", wait=False, show=None)
        page.until(lambda: len(page.state["live"]) == 2)
        experiment.cancel()
        page.until(lambda: page.state["experiments"][0]["state"] == "stopped")
        ended = page.settled()["experiments"][0]

    assert (ended["done"], ended["failed"], ended["cancelled"]) == (0, 0, 2)
    go.set()
    chat.close()


# -- what others write -----------------------------------------------------------------------------


# B11
def test_what_another_process_writes_is_found_by_looking_at_the_store(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poller, "POLL_S", 0.01)
    chat = opened(store)
    chat.append(nb.user("Q"))
    (first,) = store.load_entries("s")
    with Page(chat) as page:
        store.append("s", [first._replace(id=IdMaker()(), parent_id=first.id)])
        page.until(lambda: len(page.state["columns"]["at"]) == 2)
        store.annotate(
            [
                Annotation(
                    id=IdMaker()(),
                    session_id="s",
                    target_id=first.id,
                    name="label",
                    value_json='"theirs"',
                    created_at=1,
                )
            ]
        )
        page.until(lambda: page.state["marks"].get("1", {}).get("labels") == ["theirs"])
    chat.close()


def test_nobody_looks_for_a_page_that_was_left(store: Store) -> None:
    chat = opened(store)
    with Page(chat) as page:
        looked = store.changes("s")
        page.hear({"type": "bye"})
        woken: list[None] = []
        page.tree.feed.wake = lambda: woken.append(None)  # type: ignore[method-assign]
        store.move("s", None, 1)
        page.tree.feed.poll()

        assert (store.changes("s"), woken) == (looked + 1, [])
        page.hear({"type": "resync"})
        page.tree.feed.poll()

        assert woken
    chat.close()


# B54
def test_a_shown_tree_lets_its_session_close_and_says_so(store: Store) -> None:
    go = threading.Event()
    chat = opened(store, ["Half", go])
    with Page(chat) as page:
        run = chat.run("Q", wait=False, show=None)
        next(iter(run.stream()))
        chat.close()
        page.until(lambda: page.state["head"]["is_closed"] and not page.state["live"])

        assert page.state["columns"]["flags"][-1] == 4
        assert page.refused("branch", n=1).startswith("session 's' was closed on this handle")
        assert page.ask("previews", ns=[1]) == {"1": "Q"}


# B55 B58
@pytest.mark.parametrize(("replay", "is_only"), [(False, False), (True, False), ("only", True)])
def test_the_page_is_told_of_a_replay_that_calls_no_model(
    store: Store, replay: bool | str, is_only: bool
) -> None:
    with Page(opened(store, replay=replay)) as page:
        assert page.state["head"]["replay"] is is_only
