"""B58: the report of a replay, what open() refuses, and a whole notebook run twice."""

from __future__ import annotations

import pytest
from new_process import in_new_process
from replaying import Never, opened

import nbdurable as nb
from nbdurable.errors import RunError
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store

# -- the report and the refusals ---------------------------------------------------------------


# B58
def test_the_report_has_a_line_per_call_and_what_was_saved(store: Store) -> None:
    model = ScriptedModel("one", "two", cost_usd=0.25)
    chat = opened(store, model)
    chat.run("a", show=None)

    again = opened(store, model)
    again.run("a", show=None)
    again.append("Q")
    report = again.replay_report()

    assert (report.hits, report.misses, report.saved_usd) == (1, 1, 0.25)
    assert str(report).splitlines() == [
        "1 replayed, 1 made, $0.2500 saved",
        "  run replayed, #1-#2, $0.2500 saved",
        "  append made, at #2",
    ]
    assert "<li>append made, at #2</li>" in report._repr_html_()


# B58
def test_the_report_shows_what_was_said_as_text(store: Store) -> None:
    model = ScriptedModel("one")
    opened(store, model).run("<b>a</b>", show=None)

    again = opened(store, model)
    with pytest.warns(UserWarning, match="differs in input"):
        again.run("<i>b</i>", show=None)

    assert "<i>" not in again.replay_report()._repr_html_()


# B58 B22
@pytest.mark.parametrize("mode", [True, "only"])
def test_a_call_that_is_refused_anyhow_is_no_miss(store: Store, mode: bool | str) -> None:
    opened(store, ScriptedModel("one")).run("a", show=None)
    again = opened(store, Never(), replay=mode)
    again.run("a", show=None)

    with pytest.raises(RunError, match="nothing to continue") as refused:
        again.run()

    assert type(refused.value) is RunError
    assert again.replay_report().misses == 0


# B58
def test_without_replay_there_is_nothing_to_report(store: Store, model: ScriptedModel) -> None:
    chat = nb.open("s", store=store, model=model)

    with pytest.raises(RunError, match=r"'s' was opened without replay.*replay=True"):
        chat.replay_report()


# B55
@pytest.mark.parametrize("odd", ["yes", 1.5, None, "ONLY"])
def test_another_value_of_replay_is_refused(odd: object) -> None:
    with pytest.raises(ValueError, match=r"replay is .*; give True, 'only', or False"):
        nb.open("s", store=":memory:", replay=odd)  # type: ignore[arg-type]


# B58
@pytest.mark.parametrize(("mode", "found"), [(False, "is off"), ("only", "calls no model")])
def test_a_replay_model_without_misses_to_answer_is_refused(mode: object, found: str) -> None:
    with pytest.raises(ValueError, match=rf"replay_model is 'local'.* replay {found}"):
        nb.open("s", store=":memory:", replay=mode, replay_model="local")  # type: ignore[arg-type]


# -- Restart & Run All -------------------------------------------------------------------------

NOTEBOOK = """
import json, sys, duckdb
import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel, calls

def add(a: int, b: int) -> int:
    "Add."
    return a + b

def answer(request):
    last = request.messages[-1]
    wants = last.role == "user" and "add" in last.text and request.tools
    return calls(("add", {"a": 1, "b": 2})) if wants else f"To {last.text}"

class Note(nb.CustomEntry):
    kind = "note"
    text: str = ""

model = ScriptedModel(answer)
chat = nb.open("talk", store="talk.duckdb", model=model, tools=[add], replay=True, seed=1)
chat.append(nb.user("Be short."), nb.assistant("Gladly."))
first = chat.run("one")
chat.run(nb.ephemeral("It rains."), "add")
checkpoint = chat.leaf_id
chat.append(Note("here"))
chat.run("two", temperature=0.2)
chat.branch(checkpoint)
edited = chat.run(sys.argv[1])
chat.run("after")
chat.rerun(temperature=0.9)
edited.then("on")
child = chat.fork("child", at=checkpoint)
child.run("in the child")
chat.edit(first, "uno")
chat.edit(chat.leaf_id, "Un homme.")
live = [chat.run("side", move=False, wait=False) for _ in range(3)]
sides = [run.wait().text for run in live]
chat.compact()
chat.run("last")
path = [entry.id for entry in chat.path()]
chat.close(); child.close()
with duckdb.connect("talk.duckdb", read_only=True) as connection:
    tables = connection.sql("select table_name from duckdb_tables() where schema_name = 'nbd'")
    rows = {name: connection.sql(f"from nbd.{name}").shape[0] for (name,) in tables.fetchall()}
print(json.dumps([model.call_count, rows, path]))
"""


# B55 B56
def test_restart_and_run_all_costs_nothing_and_adds_no_row_to_any_table() -> None:
    first = in_new_process(NOTEBOOK, "seven")
    asked, rows, path = first

    again, once_more = in_new_process(NOTEBOOK, "seven"), in_new_process(NOTEBOOK, "seven")

    assert asked == 15
    assert again == once_more == [0, rows, path]


# B55 B56 B58
def test_an_edited_cell_pays_for_itself_and_what_follows_and_its_original_for_nothing() -> None:
    in_new_process(NOTEBOOK, "seven")

    asked = [in_new_process(NOTEBOOK, word)[0] for word in ("eight", "seven", "eight")]

    assert asked == [4, 0, 0]
