"""Budgets and rate limits of experiments, in the process and over HTTP."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

import nbdurable as nb
from nbdurable.errors import ModelError
from nbdurable.explore import drive, work
from nbdurable.models.base import Delta, ModelRequest
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.base import Store
from nbdurable.testing import FakeOpenAI, steps
from tests.exploring import WAIT_S, opened, outcomes, rows

NOTHING = {"entries": 0, "runs": 0, "plans": 0, "moves": 0}


def priced(most: float | None = 0.4, cost: float | None = 0.4) -> ScriptedModel:
    return ScriptedModel("Yes.", price_usd=most, cost_usd=cost)


# -- budgets ---------------------------------------------------------------------------------------


# B26
@pytest.mark.parametrize("verb", ["sample", "grid"])
def test_an_unknown_price_is_refused_at_the_start(store: Store, verb: str) -> None:
    chat = opened(store, priced(most=None))
    verbs = {
        "sample": lambda: chat.sample(2, "Q", budget_usd=9),
        "grid": lambda: chat.grid("Q", budget_usd=9),
    }

    with pytest.raises(nb.errors.BudgetExceeded, match="no known price") as caught:
        verbs[verb]()

    assert caught.value.run is not None
    assert rows(store) == NOTHING


# B26
def test_a_budget_that_no_call_fits_is_refused_at_the_start(store: Store) -> None:
    model = priced()

    with pytest.raises(nb.errors.BudgetExceeded, match=r"could cost \$0.4"):
        opened(store, model).sample(2, "Q", budget_usd=0.3)

    assert (rows(store), model.call_count) == (NOTHING, 0)


# B26
def test_cells_that_could_pass_the_budget_are_not_sent_and_stay_missing(store: Store) -> None:
    model = priced()
    chat = opened(store, model)

    with pytest.warns(UserWarning, match=r"3 of 5 cells .*could cost \$0.4"):
        exp = chat.sample(5, "Q", budget_usd=1.0)

    assert [cell.state for cell in exp].count("missing") == 3
    assert (model.call_count, rows(store)["runs"]) == (2, 2)
    assert [cell.state for cell in exp.resume()] == ["done"] * 5


# B26
def test_what_calls_did_cost_makes_room_for_the_next(store: Store) -> None:
    model = priced(most=0.4, cost=0.1)

    exp = opened(store, model).sample(5, "Q", budget_usd=0.85)

    assert [cell.state for cell in exp] == ["done"] * 5
    assert exp.cost == pytest.approx(0.5)


# B26
def test_calls_in_flight_count_with_all_they_could_cost(store: Store) -> None:
    go = threading.Event()
    model = ScriptedModel([go, "Yes."], price_usd=0.4, cost_usd=0.4)
    exp = opened(store, model).sample(5, "Q", budget_usd=1.0, wait=False)
    model.wait_for_request(2)

    go.set()
    exp.wait(timeout_s=WAIT_S)

    assert (model.call_count, outcomes(store)) == (2, {"done": 2})


# B26
def test_the_budget_of_the_handle_holds_for_experiments_as_well(store: Store) -> None:
    model = priced()
    chat = opened(store, model, budget_usd=1.0)
    chat.run("Hello", show=None)

    with pytest.warns(UserWarning, match="1 of 2 cells"):
        chat.sample(2, "Q")

    with pytest.raises(nb.errors.BudgetExceeded):
        chat.sample(1, "R")
    assert model.call_count == 2


# B26
@pytest.mark.parametrize("places", [1, 2])
def test_a_cell_that_waits_for_money_keeps_no_place_from_one_that_spends_it(
    store: Store, places: int
) -> None:
    has_come = threading.Barrier(places, timeout=WAIT_S)

    def look() -> str:
        """Look until the cells that fit the budget have called."""
        has_come.wait()
        return "seen"

    def step(request: ModelRequest) -> object:
        return "Yes." if request.messages[-1].role == "tool" else calls(("look", {}))

    model = ScriptedModel(step, price_usd=0.4, cost_usd=0.3)  # type: ignore[arg-type]
    chat = opened(store, model, tools=[look])

    exp = chat.sample(places + 2, "Q", budget_usd=0.3 * places + 0.35, concurrency=1, wait=False)

    assert exp.wait(timeout_s=WAIT_S).is_done
    assert [cell.state for cell in exp].count("missing") == 2
    assert outcomes(store) == {"error": places}  # there is no money for their second calls


# B26
@pytest.mark.parametrize(
    "error", [ValueError(), asyncio.CancelledError(), GeneratorExit(), BaseException()], ids=repr
)
def test_whatever_a_model_raises_for_one_cell_the_others_are_run_and_waited_for(
    store: Store, error: BaseException
) -> None:
    class Dear(ScriptedModel):
        asked = 0

        def max_cost_usd(self, request: ModelRequest) -> float | None:
            self.asked += 1
            if self.asked == 4:  # at the call, twice for the first cell, and for the second
                raise error
            return 0.1

    go = threading.Event()
    model = Dear([go, "Yes."], "Yes.", cost_usd=0.1)
    exp = opened(store, model).sample(5, "Q", budget_usd=9.0, concurrency=2, wait=False)
    model.wait_for_request(4)

    with pytest.raises(TimeoutError):
        exp.wait(timeout_s=0.1)
    go.set()

    states = [cell.state for cell in exp.wait(timeout_s=WAIT_S)]
    assert sorted(states) == ["done"] * 4 + ["missing"]


# -- rate limits -----------------------------------------------------------------------------------


# B25
def test_a_cell_whose_run_was_refused_for_its_rate_is_asked_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drive, "ROUND_BASE_S", 0.001)
    limited = ModelError("429", reason="rate_limit", status=429)
    model = ScriptedModel(limited, "a", "b")

    exp = opened(store, model).sample(2, "Q", concurrency=1)

    assert [cell.text for cell in exp] == ["a", "b"]
    assert (model.call_count, outcomes(store)) == (3, {"error": 1, "done": 2})


# B25
def test_a_rate_limit_without_an_end_is_the_cells_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drive, "ROUND_BASE_S", 0.001)
    model = ScriptedModel(ModelError("429", reason="rate_limit", status=429))

    with pytest.warns(UserWarning, match="1 of 1 cells .*: 429; resume"):
        exp = opened(store, model).sample(1, "Q")

    assert (exp[0].state, model.call_count) == ("error", 1 + drive.RATE_LIMIT_ROUNDS)


# B25
def test_a_cell_that_must_wait_too_long_is_told_so_at_once(store: Store) -> None:
    model = ScriptedModel(ModelError("429", reason="rate_limit", retry_after_s=3600.0))

    with pytest.warns(UserWarning, match="1 of 1 cells"):
        opened(store, model).sample(1, "Q")

    assert model.call_count == 1


# B23
def test_a_cancel_ends_the_wait_for_a_rate_limit(store: Store) -> None:
    model = ScriptedModel(ModelError("429", reason="rate_limit", retry_after_s=59.0))
    exp = opened(store, model).sample(1, "Q", wait=False)
    model.wait_for_request()

    exp.cancel()

    assert exp.wait(timeout_s=WAIT_S)[0].state == "error"


# B25 B43
def test_a_grid_over_http_rides_out_refusals(store: Store, fake: FakeOpenAI) -> None:
    lock, seen = threading.Lock(), [0]

    def step(body: dict[str, object]) -> object:
        with lock:
            seen[0] += 1
            return steps.status(429, retry_after_s=0) if seen[0] % 5 == 1 else steps.text("hi")

    fake.script(step)  # type: ignore[arg-type]
    chat = nb.open("s", store=store, model="openai/fake", api_base=fake.base_url, api_key="x")

    exp = chat.grid("Q", model=["openai/a", "openai/b"], temperature=[0, 1], n=2)

    assert [cell.state for cell in exp] == ["done"] * 8
    assert len(fake.requests) == 10
    assert {cell.run.model for cell in exp if cell.run} == {"openai/a", "openai/b"}


def test_a_lane_gives_up_places_when_calls_are_refused_and_takes_them_again() -> None:
    lane = drive.Lane(8)

    lane.learn(1)  # it kept its place empty meanwhile, which is enough
    after_one = lane.places
    for _ in range(20):
        lane.learn(2)
    slow = lane.places
    for _ in range(40):
        lane.learn(0)

    assert (after_one, slow, lane.places) == (8, 1, 8)


# B43
def test_a_cell_leaves_its_place_to_the_next_while_its_tools_run(store: Store) -> None:
    is_asked = threading.Event()

    def meet() -> str:
        """Wait until the other cell has called."""
        return "met" if is_asked.wait(WAIT_S) else "alone"

    def second(_: object) -> str:
        is_asked.set()
        return "b"

    model = ScriptedModel(calls(("meet", {})), second, "a")

    exp = opened(store, model, tools=[meet]).sample(2, "Q", concurrency=1)

    assert [cell.text for cell in exp] == ["a", "b"]


def test_places_are_taken_first_come_first_served_and_those_who_leave_lose_none() -> None:
    async def story() -> tuple[list[str], int]:
        lane, came = drive.Lane(1), []

        async def come(name: str) -> None:
            await lane.take()
            came.append(name)

        await come("first")
        waiting = [asyncio.create_task(come(name)) for name in ("left", "called", "last")]
        await asyncio.sleep(0)
        waiting[0].cancel()
        lane.give()
        waiting[1].cancel()  # it was called, and has not come yet
        await asyncio.wait(waiting, timeout=WAIT_S)
        return came, lane.taken

    assert asyncio.run(story()) == (["first", "last"], 1)


def test_a_model_gets_no_more_calls_at_once_than_it_says(store: Store) -> None:
    going: set[str] = set()
    most: list[int] = []

    class OneAtATime(ScriptedModel):
        calls_at_once = 1

        async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
            going.add(call := str(len(most)))
            most.append(len(going))
            async for delta in super().stream(request):
                yield delta
            going.discard(call)

    exp = opened(store, OneAtATime([0.01, "Yes."])).sample(6, "Q", show=None)

    assert ([cell.state for cell in exp], most) == (["done"] * 6, [1] * 6)


@pytest.mark.parametrize("budget_usd", [None, 9.0, 1.0], ids=["free", "ample", "tight"])
def test_cells_that_wait_are_no_tasks_of_the_loop(store: Store, budget_usd: float | None) -> None:
    tasks: list[int] = []

    def count(_: object) -> str:
        tasks.append(len(asyncio.all_tasks()))
        return "Yes."

    model = ScriptedModel(count, price_usd=0.4, cost_usd=0.01)
    opened(store, model).sample(60, "Q", concurrency=2, show=None, budget_usd=budget_usd)

    assert (len(tasks), max(tasks) < 30) == (60, True), tasks


def test_wait_takes_the_time_it_is_given_however_many_cells_come(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "BEAT_S", WAIT_S)  # as if each look took its longest

    exp = opened(store).sample(20, "Q", wait=False, concurrency=1).wait(timeout_s=WAIT_S)

    assert [cell.state for cell in exp] == ["done"] * 20
