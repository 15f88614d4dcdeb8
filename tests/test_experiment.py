"""Experiment: what is missing, what is picked, what goes on."""

from __future__ import annotations

import asyncio
import html
import os
import signal
import threading

import pytest

import nbdurable as nb
from nbdurable.explore import Experiment
from nbdurable.models.base import ModelRequest
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stored import Annotation
from nbdurable.stores.base import Store
from tests.exploring import WAIT_S, children, echo, opened, outcomes, rows


def failing_once(*bad: object) -> ScriptedModel:
    """Return a model that fails the first time it gets each of these temperatures."""
    left = set(bad)

    def say(request: ModelRequest) -> object:
        at = request.params.get("temperature")
        if at in left:
            left.discard(at)
            return ["half ", ConnectionError("reset")]
        return f"whole {at}"

    return ScriptedModel(say)  # type: ignore[arg-type]


# B42 B43
def test_two_handles_that_resume_at_once_ask_each_cell_once(store: Store) -> None:
    model = failing_once(*range(6))
    handles = [opened(store, model) for _ in range(2)]
    with pytest.warns(UserWarning, match="6 of 6 cells"):
        handles[0].grid("Q", temperature=range(6), name="both")
    exps = [handle.experiment("both") for handle in handles]
    at_once = threading.Barrier(2)

    def resume(exp: Experiment) -> None:
        exp._check = lambda *_: at_once.wait(WAIT_S)  # type: ignore[method-assign]
        exp.resume()

    threads = [threading.Thread(target=resume, args=(exp,)) for exp in exps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)

    done = [run.cell for run, end in store.load_runs("s") if end and end.outcome == "done"]
    assert len(done) == len(set(done)) == 6


# -- failures and what is missing ------------------------------------------------------------------


# B42 B22
def test_a_cell_that_fails_stops_no_other_and_keeps_its_part(store: Store) -> None:
    chat = opened(store, failing_once(1))

    with pytest.warns(UserWarning, match=r"1 of 3 cells .* no finished answer: .*reset; resume"):
        exp = chat.grid("Q", temperature=[0, 1, 2])

    assert [cell.state for cell in exp] == ["done", "error", "done"]
    assert (exp[1].text, "reset" in str(exp[1].error)) == ("half ", True)


# B43
def test_resume_runs_what_is_missing_beside_the_part_and_nothing_else(store: Store) -> None:
    model = failing_once(1, 2)
    chat = opened(store, model)
    with pytest.warns(UserWarning, match="2 of 3 cells"):
        exp = chat.grid("Q", temperature=[0, 1, 2])

    exp.resume()

    assert [cell.text for cell in exp] == ["whole 0", "whole 1", "whole 2"]
    assert model.call_count == 5
    assert children(store, store.load_entries("s")[0].id) == ["assistant"] * 5
    assert exp.resume() is exp
    assert model.call_count == 5


# B43
def test_another_handle_finds_an_experiment_by_name_and_finishes_it(store: Store) -> None:
    chat = opened(store, failing_once(1))
    with pytest.warns(UserWarning, match="1 of 2 cells"):
        chat.grid({"q": "Q"}, system="S", temperature=[0, 1], name="g")
    model = ScriptedModel("again", name="scripted")

    exp = opened(store, model, temperature=0.7, system="Other.").experiment("g").resume()

    assert [cell.text for cell in exp] == ["whole 0", "again"]
    (request,) = model.requests
    assert (request.system, request.params["temperature"]) == ("S", 1)
    assert [cell.axes["input"] for cell in exp] == ["q", "q"]


def test_an_unknown_experiment_is_refused_by_a_list_of_those_there_are(store: Store) -> None:
    chat = opened(store)
    chat.sample(1, "Q", name="mine")

    with pytest.raises(nb.errors.TreeError, match=r"experiment 'other' .*; it has 'mine'"):
        chat.experiment("other")


# B42
def test_a_resumed_tool_that_this_handle_lacks_is_refused_by_name(store: Store) -> None:
    def look() -> str:
        """Look."""
        return "seen"

    chat = opened(store, failing_once(None), tools=[look])
    with pytest.warns(UserWarning, match="1 of 1 cells"):
        chat.sample(1, "Q", name="g")

    with pytest.raises(nb.errors.RunError, match="tool 'look' of the experiment is not among"):
        opened(store).experiment("g").resume()


# -- cancel ----------------------------------------------------------------------------------------


def held(n: int) -> tuple[ScriptedModel, threading.Event]:
    go = threading.Event()
    return ScriptedModel(*[["part ", go, "rest"]] * n), go


# B23
def test_cancel_keeps_the_parts_and_resume_goes_on(store: Store) -> None:
    model, go = held(1)
    chat = opened(store, model)
    exp = chat.sample(5, "Q", wait=False, concurrency=2)
    model.wait_for_request(2)
    for cell in exp:
        if cell.run is not None:
            next(iter(cell.run.stream()))

    exp.cancel()
    exp.wait(timeout_s=WAIT_S)

    assert {cell.state for cell in exp} == {"aborted", "missing"}
    assert model.call_count == 2
    go.set()
    exp.resume()
    assert [cell.text for cell in exp] == ["part rest"] * 5
    assert model.call_count == 7


# B17
def test_an_interrupt_of_a_waiting_cell_cancels_all_and_passes_on(store: Store) -> None:
    ready = threading.Barrier(2)

    def interrupt(_: object) -> list[object]:
        if ready.n_waiting == 0 and not ready.broken:
            threading.Thread(target=lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            ready.abort()
        return ["part ", threading.Event()]

    chat = opened(store, ScriptedModel(interrupt))  # type: ignore[arg-type]

    with pytest.raises(KeyboardInterrupt):
        chat.sample(3, "Q")

    (exp,) = chat.experiments()
    assert set(outcomes(store)) <= {"aborted"}
    assert exp.is_done and "done" not in {cell.state for cell in exp}
    exp = opened(store, ScriptedModel("x")).experiment("sample-1").resume()
    assert [cell.text for cell in exp] == ["x"] * 3


# B54
def test_close_cancels_what_the_handle_started_and_starts_no_more(store: Store) -> None:
    model, _ = held(1)
    chat = opened(store, model)
    chat.sample(5, "Q", wait=False, concurrency=2)
    model.wait_for_request(2)

    chat.close()

    assert outcomes(store) == {"aborted": 2}
    assert model.call_count == 2


# B18
def test_cells_that_are_under_way_are_not_started_twice(store: Store) -> None:
    model, go = held(1)
    chat = opened(store, model)
    exp = chat.sample(4, "Q", wait=False, concurrency=2, name="g")
    model.wait_for_request(2)

    same = opened(store, model).experiment("g").resume(wait=False)
    go.set()
    same.wait(timeout_s=WAIT_S)

    assert model.call_count == 4
    assert [cell.state for cell in exp] == [cell.state for cell in same] == ["done"] * 4


def test_no_more_than_the_given_number_of_calls_are_made_at_once(store: Store) -> None:
    running, most, lock = 0, 0, threading.Lock()
    met = threading.Event()  # the first answers wait until as many as may are under way

    def say(_: object) -> list[object]:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == 3:
                met.set()
        return ["x", met]

    class Counted(ScriptedModel):
        async def _play(self, number: int, request: ModelRequest):  # type: ignore[no-untyped-def]
            nonlocal running
            async for delta in super()._play(number, request):
                yield delta
            with lock:
                running -= 1

    opened(store, Counted(say)).sample(12, "Q", concurrency=3)  # type: ignore[arg-type]

    assert most == 3


def test_each_provider_has_places_of_its_own(store: Store) -> None:
    met = threading.Barrier(2)
    done = threading.Event()

    def meet(_: object) -> list[object]:
        threading.Thread(target=lambda: met.wait(WAIT_S) >= 0 and done.set()).start()
        return ["x", done]

    a, b = (ScriptedModel(meet, name=f"{who}/m") for who in "ab")  # type: ignore[arg-type]

    exp = opened(store, a).grid("Q", model=[a, b], concurrency=1)

    assert [cell.state for cell in exp] == ["done", "done"]


# B15
def test_a_live_experiment_is_awaited_under_a_running_loop(store: Store) -> None:
    async def cell() -> list[str]:
        exp = await opened(store).sample(2, "Q", wait=False)
        return [one.text for one in exp]

    assert asyncio.run(cell()) == ["An answer."] * 2


def test_answers_come_as_they_are_finished(store: Store) -> None:
    gates = {0: threading.Event(), 1: threading.Event()}
    model = ScriptedModel(lambda request: [gates[request.params["temperature"]], "x"])  # type: ignore[index,arg-type]
    exp = opened(store, model).grid("Q", temperature=[0, 1], wait=False)

    gates[1].set()
    coming = exp.as_completed()
    first = next(coming)
    gates[0].set()

    assert [first.axes["temperature"], *(cell.axes["temperature"] for cell in coming)] == [1, 0]


def test_wait_says_when_time_is_over_and_leaves_it_alone(store: Store) -> None:
    model, go = held(1)
    exp = opened(store, model).sample(1, "Q", wait=False)

    with pytest.raises(TimeoutError, match="still goes on after 0 s"):
        exp.wait(timeout_s=0)
    go.set()

    assert exp.wait(timeout_s=WAIT_S)[0].text == "part rest"


# -- going on --------------------------------------------------------------------------------------


# B19 B18
def test_then_continues_every_alternative_with_its_own_settings(store: Store) -> None:
    a, b = echo("a"), echo("b")
    chat = opened(store, a)
    leaf = chat.run("Hello", show=None).leaf_id
    exp = chat.grid("Q", model=[a, b], system={"s": "S", "t": "T"})

    more = exp.then("more")

    assert [cell.axes for cell in more] == [cell.axes for cell in exp]
    assert [cell.text for cell in more] == ["a S more", "a T more", "b S more", "b T more"]
    for before, after in zip(exp, more, strict=True):
        assert after.entry is not None and before.entry is not None
        assert [entry.id for entry in chat.path(after.entry)][-3] == before.entry.id
    assert chat.leaf_id == leaf


def test_then_without_input_or_answers_is_refused(store: Store) -> None:
    chat = opened(store)
    plan = chat.sample(2, "Q", start=False)

    with pytest.raises(nb.errors.RunError, match="no finished answer to go on from"):
        plan.then("more")
    with pytest.raises(nb.errors.EntryError, match=r"then\(\) was given no input"):
        plan.then()


# B39
def test_pick_moves_leaf_and_position_onto_an_answer(store: Store) -> None:
    told: list[str] = []
    chat = opened(store, echo(), publisher=lambda event: told.append(event.type))
    exp = chat.grid("Q", temperature=[0, 1])

    cell = exp.pick(1)

    assert cell.entry is not None
    assert chat.leaf_id == opened(store).leaf_id == cell.entry.id
    assert told == ["session_init", "session_branched"]
    assert chat.run("And?", show=None).start_leaf_id == cell.entry.id


def test_pick_of_a_cell_without_an_answer_is_refused(store: Store) -> None:
    plan = opened(store).sample(2, "Q", start=False)

    with pytest.raises(nb.errors.RunError, match=r"cell 1 .* has no answer to pick \(missing\)"):
        plan.pick(1)
    with pytest.raises(IndexError, match="cell 2 is not in experiment"):
        plan.pick(2)


# -- as data ---------------------------------------------------------------------------------------


def test_a_frame_has_a_row_per_cell_and_a_column_per_axis(store: Store) -> None:
    chat = opened(store, echo(cost_usd=0.5))

    frame = chat.grid({"a": "A", "b": "B"}, temperature=[0, 0.5]).df()

    assert list(frame.columns[:3]) == ["input", "temperature", "sample"]
    assert frame["text"].tolist() == ["echo 0 A", "echo 0.5 A", "echo 0 B", "echo 0.5 B"]
    assert frame["cost_usd"].sum() == 2.0
    assert frame["output_tokens"].tolist() == [7] * 4
    assert frame.groupby("temperature")["cost_usd"].sum().tolist() == [1.0, 1.0]
    found = {entry.id: entry.n for entry in chat.entries()}
    assert [found[i] for i in frame["entry_id"]] == frame["n"].tolist()


# B43
def test_identical_samples_are_collapsed_and_counted_on_request(store: Store) -> None:
    chat = opened(store, ScriptedModel("yes", "no", "yes", cost_usd=0.5))

    frame = chat.sample(3, "Q", concurrency=1).df(collapse=True)

    assert dict(zip(frame["text"], frame["count"], strict=True)) == {"yes": 2, "no": 1}
    assert frame["cost_usd"].tolist() == [1.0, 0.5]
    assert "sample" not in frame.columns


def test_an_axis_called_like_a_column_keeps_its_labels(store: Store) -> None:
    chat = opened(store)

    frame = chat.grid("Q", model={"mine": echo("a"), "yours": echo("b")}).df()

    assert frame["model"].tolist() == ["mine", "yours"]


# B70
def test_scores_are_columns_the_latest_of_an_author_counts(store: Store) -> None:
    chat = opened(store)
    exp = chat.sample(2, "Q")
    target = exp[0].entry.id  # type: ignore[union-attr]

    def rated(value: str, by: str, name: str = "good") -> Annotation:
        return Annotation(
            id=chat.image.new_id(), session_id="s", target_id=target, name=name, value_json=value,
            created_at=1, by=by,
        )  # fmt: skip

    store.annotate([rated("1", "me"), rated("2", "me"), rated('"x"', "me", "label")])

    frame = exp.df()

    assert frame["good"].tolist()[0] == 2 and frame["good"].isna().tolist() == [False, True]
    assert "label" not in frame.columns
    store.annotate([rated("5", "you")])
    assert exp.df()["good.you"].tolist()[0] == 5


def test_a_frame_without_finished_cells_has_the_same_columns(store: Store) -> None:
    chat = opened(store)
    done = chat.sample(1, "Q")

    plan = chat.sample(1, "Q", start=False)

    assert list(plan.df().columns) == list(done.df().columns)
    assert plan.df().dtypes.tolist() == done.df().dtypes.tolist()
    assert plan.df()["state"].tolist() == ["missing"]


# B64
def test_its_table_escapes_every_text(store: Store) -> None:
    bad = "<script>alert(1)</script>"
    chat = opened(store, ScriptedModel(bad))

    page = chat.grid({bad: "Q"}, name=bad)._repr_html_()

    assert "<script>" not in page
    assert html.escape(bad) in page


def test_its_repr_says_how_far_it_is(store: Store) -> None:
    chat = opened(store)

    assert (
        repr(chat.sample(2, "Q", start=False))
        == "<Experiment not stored, sample, 0 of 2 cells done>"
    )
    assert (
        repr(chat.sample(2, "Q", name="mine")) == "<Experiment 'mine', sample, 2 of 2 cells done>"
    )
    assert rows(store)["plans"] == 1
