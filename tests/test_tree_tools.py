"""Tools in a shown tree: those that ask first, and those that must not be repeated unasked."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from treeing import Page

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.base import Store


def opened(store: Store, *steps: object, **options: Any) -> nb.Session:
    model = ScriptedModel(*steps)  # type: ignore[arg-type]
    return nb.open("s", store=store, model=model, **options)


def paying(paid: list[int], **options: Any) -> Any:
    @nb.tool(**options)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    return pay


# B29
@pytest.mark.parametrize("allow", [True, False])
def test_a_tool_that_must_be_confirmed_asks_in_the_widget(store: Store, allow: bool) -> None:
    paid: list[int] = []
    chat = opened(store, calls(("pay", {"amount": 5})), "Done.", tools=[paying(paid, confirm=True)])
    with Page(chat) as page:
        run = page.act("run", text="Pay 5")["run"]
        page.until(lambda: bool(page.state["questions"]))
        (asked,) = page.state["questions"]
        told = (asked["run"], asked["tool"], asked["text"])
        page.act("answer", id=asked["id"], allow=allow)
        page.until(lambda: page.state["questions"] == [])
        page.idle()

        assert told == (run, "pay", 'run pay({"amount": 5})?')
        assert paid == ([5] if allow else [])
        confirmed = [one for one in chat.annotations() if one.name == "confirm"]
        assert [one.value["allow"] for one in confirmed] == [allow]  # type: ignore[index, call-overload]
        assert page.refused("answer", id=asked["id"], allow=True).endswith("any more")
    chat.close()


# B29
def test_an_answer_has_code_and_counts_once(store: Store) -> None:
    paid: list[int] = []
    step = calls(("pay", {"amount": 1}), ("pay", {"amount": 2}))
    chat = opened(store, step, "Done.", tools=[paying(paid, confirm=True)])
    with Page(chat) as page:
        page.act("run", text="Pay")
        page.until(lambda: len(page.state["questions"]) == 1)
        first = page.state["questions"][0]["id"]
        code = page.ask("code", name="answer", args={"id": first, "allow": True})["code"]
        exec(code, {"chat": chat})
        page.until(lambda: [one["id"] for one in page.state["questions"]] not in ([], [first]))

        again = page.refused("answer", id=first, allow=False)
        page.act("answer", id=page.state["questions"][0]["id"], allow=False)
        page.idle()

        assert again == "this question has been answered already"
        assert paid == [1]
    chat.close()


# B29
def test_a_cell_that_waits_leaves_a_question_to_buttons_that_work_meanwhile(store: Store) -> None:
    paid: list[int] = []
    chat = opened(store, calls(("pay", {"amount": 5})), "Done.", tools=[paying(paid, confirm=True)])
    with Page(chat) as page:
        hearing = threading.Thread(target=page.hear, args=({"type": "resync"},))  # a subshell
        hearing.start()
        hearing.join()
        answering = threading.Thread(
            target=lambda: (
                page.until(lambda: bool(page.state["questions"])),
                page.act("answer", id=page.state["questions"][0]["id"], allow=True),
            )
        )
        answering.start()

        run = chat.run("Pay 5", show=None)
        answering.join()

        assert (run.text, paid) == ("Done.", [5])
    chat.close()


# B29
def test_sampling_with_effects_is_refused_with_the_way_to_allow_it(store: Store) -> None:
    paid: list[int] = []
    tools = [paying(paid, effects=True)]
    chat = opened(store, calls(("pay", {"amount": 5})), "Done.", tools=tools)
    chat.append(nb.user("Pay 5"))
    with Page(chat) as page:
        refusal = page.refused("sample", n=1, count=1)
        priced = page.ask("estimate", n=1, count=2)
        page.act("sample", n=1, count=1, effects="run")
        page.until(lambda: page.state["experiments"] != [])
        page.until(lambda: page.state["experiments"][0]["state"] == "done")

        assert "tool 'pay', which has effects" in refusal
        assert "allow it by effects='run'" in refusal
        assert priced["text"].startswith("2 calls")
        assert paid == [5]
    chat.close()


# B29
@pytest.mark.parametrize("effects", [None, "run"])
def test_a_rerun_repeats_an_effect_only_when_it_is_asked_to(
    store: Store, effects: str | None
) -> None:
    paid: list[int] = []
    tools = [paying(paid, effects=True)]
    pay = calls(("pay", {"amount": 5}))
    chat = opened(store, pay, "Done.", pay, "Again.", tools=tools)
    chat.run("Pay 5", show=None)
    with Page(chat) as page:
        page.act("rerun", n=2, effects=effects)
        page.idle()
        result = page.ask("detail", n=6)["blocks"][0]["result"]

        assert paid == ([5, 5] if effects else [5])
        assert effects or "effects='run' would repeat it" in result["text"]
        assert result["is_error"] is (effects is None)
    chat.close()
