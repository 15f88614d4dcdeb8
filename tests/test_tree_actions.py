"""What a person does in a shown tree: the API's own verbs, once, with words when it cannot be."""

from __future__ import annotations

import threading
from copy import deepcopy
from typing import Any

import pytest
from treeing import Page

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.notebook.tree import actions
from nbdurable.stored import StoredEntry
from nbdurable.stores.base import Store
from nbdurable.stores.memory import MemoryStore


def opened(store: Store, *steps: object, **options: Any) -> nb.Session:
    model = ScriptedModel(*(steps or ("An answer.",)))  # type: ignore[arg-type]
    return nb.open("s", store=store, model=model, **options)


def begun(store: Store, **options: Any) -> nb.Session:
    """Return a session of two turns: #1 to #4."""
    chat = opened(store, **options)
    chat.run("First", show=None)
    chat.run("Second", show=None)
    return chat


def said(chat: nb.Session) -> list[tuple[int, str | None, str]]:
    return [(parent(chat, node), node.role, node.preview) for node in chat.tree().nodes]


def parent(chat: nb.Session, node: StoredEntry) -> int:
    above = chat.tree().get(node.parent_id)
    return above.n if above else 0


# -- each act, and its code ------------------------------------------------------------------------

ACTS: dict[str, dict[str, Any]] = {
    "branch": {"n": 2},
    "branch to the root": {"n": 0},
    "rerun": {"n": 4},
    "rerun with settings": {
        "n": 2, "system": "Be brief.", "params": {"temperature": 0.9},
    },
    "rerun without system": {"n": 2, "system": None, "effects": "run"},
    "edit": {"n": 3, "text": "Second, but\n'better'"},
    "edit without run": {"n": 3, "text": "Saved only", "run": False},
    "edit of an answer": {"n": 4, "text": "My own words", "run": False},
    "sample": {"n": 3, "count": 2},
    "sample of an answer": {"n": 2, "count": 1, "params": {"temperature": 1}},
    "run": {"text": "Third"},
    "run elsewhere": {"text": "Third", "at": 2},
    "run at the root": {"text": "Anew", "at": 0, "system": "Other."},
    "label": {"n": 2, "text": "the 'one'"},
    "label away": {"n": 1, "text": None},
    "rate": {"n": 2, "score": 0.5, "name": "tone", "note": "dry"},
    "rate away": {"n": 2, "score": None},
    "prefer": {"winner": 2, "losers": [4]},
    "prefer no more": {"winner": 2, "losers": []},
    "compact": {},
}  # fmt: skip


CODE = {
    "branch": "chat.branch(2)",
    "branch to the root": "chat.branch(None)",
    "rerun": "chat.rerun(4)",
    "rerun with settings": "chat.rerun(2, system='Be brief.', temperature=0.9)",
    "rerun without system": "chat.rerun(2, system=None, effects='run')",
    "edit": "chat.edit(3, \"Second, but\\n'better'\")",
    "edit without run": "chat.branch(2); chat.append(nb.user('Saved only'))",
    "edit of an answer": "chat.edit(4, 'My own words')",
    "sample": "chat.sample(2, at=3)",
    "sample of an answer": "chat.sample(1, at=2, temperature=1)",
    "run": "chat.run('Third')",
    "run elsewhere": "chat.run('Third', at=2)",
    "run at the root": "chat.run('Anew', at=None, system='Other.')",
    "label": "chat.label(2, \"the 'one'\")",
    "label away": "chat.label(1, None)",
    "rate": "chat.rate(2, 0.5, name='tone', note='dry')",
    "rate away": "chat.rate(2, None)",
    "prefer": "chat.prefer(2, 4)",
    "prefer no more": "chat.prefer(2, None)",
    "compact": "chat.compact()",
}


def state_after(page: Page, chat: nb.Session) -> dict[str, Any]:
    page.idle()
    chat.image.refresh()
    runs = [
        (record.kind, record.model, record.params_json, record.moves, record.context_digest)
        for record, _ in chat.image.store.load_runs("s")
    ]
    marks = page.state["marks"]
    leaf = page.state["head"]["leaf"]
    return {"said": said(chat), "leaf": leaf, "runs": runs, "marks": deepcopy(marks)}


# B42 B43 B70
@pytest.mark.filterwarnings("ignore:the same input is stored")
@pytest.mark.parametrize("act", ACTS)
def test_an_act_and_its_code_have_the_same_effect(act: str) -> None:
    name = act.partition(" ")[0]
    clicked, typed = begun(MemoryStore(), temperature=0.2), begun(MemoryStore(), temperature=0.2)
    for chat in (clicked, typed):
        chat.label(1, "old")
    args = ACTS[act]

    with Page(clicked) as page, Page(typed) as other:
        before = state_after(page, clicked)
        code = page.ask("code", name=name, args=args)["code"]
        assert code == CODE[act]
        page.act(name, **args)
        after = state_after(page, clicked)
        exec(code, {"chat": typed, "nb": nb})

        assert after == state_after(other, typed)
        assert after != before or act == "rate away" or act == "prefer no more"
    clicked.close()
    typed.close()


def test_code_names_what_it_is_given_and_only_that(store: Store) -> None:
    chat = begun(store)
    given = {"n": 2, "model": "openai/gpt-5", "params": {"temperature": 0.9}, "effects": "run"}
    with Page(chat) as page:

        def code(name: str, **args: Any) -> str:
            return str(page.ask("code", name=name, args=args)["code"])

        assert code("rerun", n=12, params={"temperature": 0.9}) == "chat.rerun(12, temperature=0.9)"
        assert code("rerun", **given) == (
            "chat.rerun(2, model='openai/gpt-5', temperature=0.9, effects='run')"
        )
        assert code("edit", n=3, text="x", run=False) == "chat.branch(2); chat.append(nb.user('x'))"
        assert code("goon", n=3) == "chat.run(at=3)"
        assert code("compare", ns=[2, 4]) == "nb.compare(chat[2], chat[4])"
        assert code("copy", n=2) == "chat[2].id"
    chat.close()


# B22
def test_going_on_after_an_error_is_a_run_without_input(store: Store) -> None:
    chat = opened(store, nb.errors.ModelError("no"), "Yes.")
    with pytest.raises(nb.errors.ModelError, match="no"):
        chat.run("Q", show=None)
    with Page(chat) as page:
        page.act("goon", n=1)
        page.idle()

        assert said(chat) == [(0, "user", "Q"), (1, "assistant", "Yes.")]
    chat.close()


# B23
def test_cancel_stops_a_run_wherever_it_was_started_and_has_code(store: Store) -> None:
    go = threading.Event()
    chat = opened(store, ["Half", go])
    with Page(chat) as page:
        run = chat.run("Q", wait=False, show=None)
        other = chat.run("R", wait=False, show=None, move=False)
        page.until(lambda: len([row for row in page.state["live"] if row["text"]]) == 2)
        code = page.ask("code", name="cancel", args={"run": other.run_id})["code"]
        page.act("cancel", run=run.run_id)
        exec(code, {"chat": chat})
        page.idle()

        assert (run.outcome, other.outcome) == ("aborted", "aborted")
        assert set(page.state["notes"].values()) == {"the run was cancelled"}
        refusal = page.refused("cancel", run=run.run_id)
        assert refusal == f"run '{run.run_id}' is not going on here any more"
    chat.close()


# B23 B43
def test_an_experiment_is_stopped_with_the_runs_that_have_not_begun(store: Store) -> None:
    go = threading.Event()
    chat = opened(store, ["Half", go])
    with Page(chat) as page:
        made = [chat.sample(20, f"Q{n}", wait=False, show=None) for n in range(2)]
        page.until(lambda: len([row for row in page.state["live"] if row["text"]]) > 2)
        code = page.ask("code", name="stop", args={"experiment": made[1].id})["code"]
        page.act("stop", experiment=made[0].id)
        exec(code, {"chat": chat})
        page.idle()

        assert [one["state"] for one in page.state["experiments"]] == ["stopped", "stopped"]
        assert len(chat.runs()) < 20
        refusal = page.refused("stop", experiment=made[0].id)
        assert refusal == f"experiment {made[0].id!r} is not going on here any more"
    chat.close()


# -- refused ---------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "unknown": ("explode", {}, "action 'explode' is not known here; reload the page"),
    "missing": ("rerun", {}, "rerun was given no 'n'; give one"),
    "odd name": ("rerun", {"n": 2, "x": 1},
                 "rerun takes no 'x'; it takes n, model, system, params, effects"),
    "text for n": ("rerun", {"n": "2"},
                   "n of rerun is '2'; give the ordinal of an entry, such as 12"),
    "bool for n": ("branch", {"n": True},
                   "n of branch is True; give the ordinal of an entry, or 0 for the root"),
    "no such entry": ("branch", {"n": 99},
                      "entry #99 is not in session 's' (4 entries); near it: #4; there are #1 to"
                      " #4"),
    "blank": ("run", {"text": " "}, "text of run is ' '; give text that is not blank"),
    "too many": ("sample", {"n": 1, "count": 5_000},
                 "count of sample is 5000; give a whole number from 1 to 1,000"),
    "effects": ("rerun", {"n": 2, "effects": "maybe"},
                "effects of rerun is 'maybe'; give 'run' or 'refuse'"),
    "score": ("rate", {"n": 2, "score": "good"},
              "score of rate is 'good'; give a number, a bool, or null"),
    "finished": ("goon", {"n": 4},
                 "the path ends in a finished reply, so there is nothing to continue; give input,"
                 " or rerun() the answer"),
    "summary": ("edit", {"n": 2, "text": "x", "model": "y"},
                "edit of an assistant entry runs nothing, so 'model' has no use"),
    "half a character": ("rerun", {"n": 2, "model": "\ud800"},
                         "model name '\\ud800' holds half a character; correct the name"),
    "question": ("answer", {"id": "r:0", "allow": True},
                 "run 'r' is not going on here any more"),
}  # fmt: skip


# case 47
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_refused_in_one_line(
    store: Store, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    act, args, text = REFUSED[case]
    chat = begun(store)
    with Page(chat) as page:
        before = page.settled()["head"] | {}

        assert page.refused(act, **args) == text
        assert page.tree.error == text
        assert page.settled()["head"] == before
        assert caplog.text == ""  # who asked for it is told, and nobody else
        assert page.act("branch", n=2) is None
        assert page.tree.error == ""
    chat.close()


# case 47
def test_an_error_of_a_run_is_told_at_its_entry_and_the_widget_lives_on(store: Store) -> None:
    chat = begun(store)
    chat.settings.model._steps = []  # type: ignore[attr-defined]
    with Page(chat) as page:
        page.act("rerun", n=4)
        page.until(lambda: "3" in page.state["notes"])

        assert page.state["notes"]["3"].startswith("model 'scripted' has no step for call 3")
        assert page.act("branch", n=1) is None
    chat.close()


# B18
def test_a_second_start_is_refused_while_the_first_goes_on(store: Store) -> None:
    go = threading.Event()
    chat = opened(store, ["Half", go])
    with Page(chat) as page:
        page.act("run", text="Q")

        refusal = page.refused("run", text="Another")

        assert "going on in this process; wait() for it, cancel() it" in refusal
        go.set()
        page.idle()
        assert len(page.state["columns"]["at"]) == 2
    chat.close()


def test_a_double_click_starts_one_run_however_fast_it_ends(store: Store) -> None:
    chat = begun(store)
    now = [0.0]
    doing = actions.Actions(chat, now=lambda: now[0])

    first = doing.do("sample", {"n": 1, "count": 2})
    now[0] += actions.DOUBLE_S / 2
    with pytest.raises(Exception, match="sample was asked for twice at once and is done once"):
        doing.do("sample", {"n": 1, "count": 2})
    now[0] += actions.DOUBLE_S
    doing.do("sample", {"n": 1, "count": 2})

    assert first is None
    assert [len(exp.wait()) for exp in chat.experiments()] == [2, 2]
    chat.close()


# B49
def test_a_compaction_is_begun_and_seen_like_a_run(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "DOUBLE_S", 0.0)
    go = threading.Event()
    chat = begun(store)
    chat.settings.model._steps = [ScriptedModel([go, "Summary."])._steps[0]]  # type: ignore[attr-defined]
    with Page(chat) as page:
        begun_run = page.act("compact")["run"]
        page.until(lambda: [row["run"] for row in page.state["live"]] == [begun_run])
        go.set()
        page.idle()

        assert page.role(5) == "compaction"
        assert page.refused("compact").startswith("there is nothing to summarise")
    chat.close()
