"""B26: budgets refuse a call that could pass them, before it is sent."""

from __future__ import annotations

import threading

import pytest

import nbdurable as nb
from nbdurable.models.base import Finish
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.base import Store

BudgetExceeded = nb.errors.BudgetExceeded


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def priced(*steps: object, most: float | None = 0.4, cost: float | None = 0.4) -> ScriptedModel:
    """Return a model whose calls cost `cost` and can cost `most` USD."""
    return ScriptedModel(*steps, price_usd=most, cost_usd=cost)  # type: ignore[arg-type]


def opened(store: Store, model: ScriptedModel, **options: object) -> nb.Session:
    return nb.open("s", store=store, model=model, **options)  # type: ignore[arg-type]


def refused(chat: nb.Session, text: str = "One more?", **options: object) -> nb.Run:
    """Run what a budget refuses, and return the run."""
    with pytest.raises(BudgetExceeded, match=r"budget_usd=") as caught:
        chat.run(text, show=None, **options)  # type: ignore[arg-type]
    assert caught.value.run is not None
    return caught.value.run


# B26
def test_a_call_that_could_pass_the_budget_is_refused_at_the_call(store: Store) -> None:
    model = priced("Yes.", most=0.5)
    chat = opened(store, model, budget_usd=0.4)

    run = refused(chat)

    assert (model.call_count, store.load_entries("s"), store.load_runs("s")) == (0, [], [])
    assert (run.outcome, run.is_done, run.entries) == ("error", True, ())
    assert "could cost $0.5" in str(run.error)


# B26
def test_a_call_that_just_fits_is_sent(store: Store) -> None:
    chat = opened(store, priced("Yes.", most=0.4), budget_usd=0.4)

    assert chat.run("Is it?", show=None).text == "Yes."


# B26
def test_the_budget_of_open_counts_what_the_handle_has_spent(store: Store) -> None:
    chat = opened(store, priced("a", "b", "c"), budget_usd=1.0)
    chat.run("1", show=None)
    chat.run("2", show=None)

    refused(chat, "3")

    assert len(store.load_entries("s")) == 4


# B26
def test_a_call_counts_what_it_did_cost_not_the_most_it_could(store: Store) -> None:
    chat = opened(store, priced("x", most=0.4, cost=0.1), budget_usd=0.5)

    chat.run("1", show=None)
    chat.run("2", show=None)
    refused(chat, "3")


# B26
def test_a_call_of_unknown_cost_counts_all_it_could(store: Store) -> None:
    chat = opened(store, priced("x", most=0.4, cost=None), budget_usd=0.7)
    chat.run("1", show=None)

    refused(chat, "2")


# B26 B22
def test_a_cut_answer_counts_all_it_could(store: Store) -> None:
    chat = opened(store, priced(["Half", ConnectionError("reset")], "x"), budget_usd=0.7)
    with pytest.raises(nb.errors.ModelError, match="reset"):
        chat.run("1", show=None)

    refused(chat, "2")


# B26 B23
def test_a_call_cancelled_before_output_counts_all_it_could(store: Store) -> None:
    model = priced([threading.Event()], "x")
    chat = opened(store, model, budget_usd=0.7)
    run = chat.run("1", wait=False, show=None)
    model.wait_for_request()
    run.cancel()
    run.wait()

    refused(chat, "2")


# B26
def test_a_call_that_failed_before_output_costs_nothing(store: Store) -> None:
    chat = opened(store, priced(nb.errors.ModelError("no such model"), "Yes."), budget_usd=0.4)
    with pytest.raises(nb.errors.ModelError, match="no such model"):
        chat.run("1", show=None)

    assert chat.run("2", show=None).text == "Yes."


# B26
def test_another_handle_has_a_budget_of_its_own(store: Store) -> None:
    chat = opened(store, priced("x"), budget_usd=0.5)
    chat.run("1", show=None)

    other = opened(store, priced("y"), budget_usd=0.5)

    assert other.run("2", show=None).text == "y"
    refused(chat, "3")


# B26
def test_a_budget_of_the_verb_counts_that_call_alone(store: Store) -> None:
    chat = opened(store, priced("a", "b"))

    for text in ("1", "2"):
        chat.run(text, show=None, budget_usd=0.4)

    refused(chat, "3", budget_usd=0.3)


# B26
def test_a_budget_of_the_verb_does_not_lift_that_of_the_handle(store: Store) -> None:
    refused(opened(store, priced("a"), budget_usd=0.3), budget_usd=5.0)


# B26
def test_the_environment_gives_the_budget_of_open(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NBDURABLE_BUDGET_USD", "0.3")

    refused(opened(store, priced("a")))
    assert opened(store, priced("a"), budget_usd=1.0).run("1", show=None).text == "a"


# B26
def test_an_environment_that_is_no_number_is_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NBDURABLE_BUDGET_USD", "a few")

    with pytest.raises(ValueError, match="NBDURABLE_BUDGET_USD is 'a few'; set it to a number"):
        opened(store, priced("a"))


# B26
@pytest.mark.parametrize("limit", [-1.0, float("nan"), "1", True])
def test_a_senseless_budget_is_refused(store: Store, limit: object) -> None:
    with pytest.raises(ValueError, match=r"budget_usd is .*; give a number of USD, 0 or more"):
        opened(store, priced("a"), budget_usd=limit)


# B26
@pytest.mark.parametrize("where", ["open", "run"])
def test_an_unknown_price_is_refused_at_the_start(store: Store, where: str) -> None:
    model = priced("Yes.", most=None)
    chat = opened(store, model, budget_usd=9.0) if where == "open" else opened(store, model)

    with pytest.raises(BudgetExceeded, match="no known price or output limit") as caught:
        chat.run("Is it?", show=None, **({"budget_usd": 9.0} if where == "run" else {}))

    assert caught.value.run is not None
    assert (model.call_count, store.load_entries("s")) == (0, [])


# B26
def test_an_unknown_price_is_no_matter_without_a_budget(store: Store) -> None:
    assert opened(store, priced("Yes.", most=None)).run("Is it?", show=None).text == "Yes."


# B26
def test_a_refusal_in_mid_run_ends_it_with_what_is_stored(store: Store) -> None:
    model = priced(calls(("add", {"a": 1, "b": 2})), "3.")
    chat = opened(store, model, tools=[add], budget_usd=0.5)

    run = refused(chat, "Add.")

    assert (run.outcome, run.events[-1].type, model.call_count) == ("error", "agent_error", 1)
    assert [entry.role for entry in store.load_entries("s")] == ["user", "assistant", "tool"]
    assert [entry.id for entry in run.entries] == [e.id for e in store.load_entries("s")]
    assert [end.outcome for _, end in store.load_runs("s") if end] == ["error"]


# B26 B22
def test_a_run_refused_in_its_midst_goes_on_with_more_money(store: Store) -> None:
    model = priced(calls(("add", {"a": 1, "b": 2})), "3.")
    refused(opened(store, model, tools=[add], budget_usd=0.5), "Add.")

    run = opened(store, model, tools=[add], budget_usd=0.5).run(show=None)

    assert (run.text, [m.role for m in run.messages]) == ("3.", ["assistant"])


# B26
def test_runs_at_once_count_what_is_in_flight(store: Store) -> None:
    go = threading.Event()
    model = priced([go, "a"], "b", "c")
    chat = opened(store, model, budget_usd=0.7)
    first = chat.run("1", wait=False, move=False, show=None)
    model.wait_for_request()

    refused(chat, "2", move=False)
    go.set()

    assert (first.wait().text, model.call_count) == ("a", 1)


# B26
def test_what_a_call_held_is_free_again_when_it_has_ended(store: Store) -> None:
    go = threading.Event()
    model = priced([go, "a"], "b", most=0.4, cost=0.1)
    chat = opened(store, model, budget_usd=0.5)
    first = chat.run("1", wait=False, move=False, show=None)
    model.wait_for_request()
    refused(chat, "2", move=False)

    go.set()
    first.wait()

    assert chat.run("2", move=False, show=None).text == "b"


# B26
def test_many_runs_at_once_never_spend_more_than_the_budget(store: Store) -> None:
    go = threading.Event()
    model = priced([go, "x"], most=0.2, cost=0.2)
    chat = opened(store, model, budget_usd=1.0)
    failures: list[BudgetExceeded] = []
    begin = threading.Barrier(10)

    def one() -> None:
        begin.wait(20)
        try:
            run = chat.run("1", wait=False, move=False, show=None)
            for _ in run:
                pass
        except BudgetExceeded as exc:
            failures.append(exc)
            if len(failures) == 5:
                go.set()

    threads = [threading.Thread(target=one) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (model.call_count, len(failures)) == (5, 5)
    assert all(failure.run is not None for failure in failures)


# B26 B42
@pytest.mark.parametrize("verb", ["rerun", "edit", "compact", "then"])
def test_the_handles_budget_holds_for_every_verb_that_calls(store: Store, verb: str) -> None:
    chat = opened(store, priced("x"), budget_usd=0.5)
    run = chat.run("1", show=None)
    verbs = {
        "rerun": lambda: chat.rerun(run, show=None),
        "edit": lambda: chat.edit(run, "2", show=None),
        "compact": lambda: chat.compact(),
        "then": lambda: run.then("2", show=None),
    }

    with pytest.raises(BudgetExceeded, match=r"is left of budget_usd=0\.5"):
        verbs[verb]()

    assert len(store.load_entries("s")) == 2


# B26
def test_a_refused_answer_with_a_known_cost_counts_that(store: Store) -> None:
    filtered = ["I can", Finish(stop_reason="error", error="filtered", cost_usd=0.1)]
    chat = opened(store, priced(filtered, "Yes."), budget_usd=0.5)
    with pytest.raises(nb.errors.ModelError, match="filtered"):
        chat.run("1", show=None)

    assert chat.run("2", show=None).text == "Yes."
