"""An entry in full: its words, its calls with their results, its record; what is cut is counted."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from html_reader import TRAPS
from treeing import Page

import nbdurable as nb
from nbdurable.blocks import ImageBlock
from nbdurable.models.base import CallDelta
from nbdurable.models.scripted import ScriptedModel, calls, thinking
from nbdurable.notebook.markdown.nodes import ALLOWED_TAGS
from nbdurable.notebook.tree import detail as detailing
from nbdurable.stores.base import Store

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def opened(store: Store, *steps: object, **options: Any) -> nb.Session:
    model = ScriptedModel(*steps, cost_usd=0.25)  # type: ignore[arg-type]
    return nb.open("s", store=store, model=model, **options)


def look(city: str) -> list[object]:
    """Look."""
    if city == "Rome":
        raise ValueError("no such place")
    return ["seen " + city, nb.image(PNG, "image/png")]


# B54
def test_entries_can_be_read_when_the_session_is_closed(store: Store) -> None:
    chat = opened(store, "**Yes**", system="Be brief.")
    chat.run("May I?", show=None)
    chat.label(2, "first")
    with Page(chat) as page:
        chat.close()
        page.until(lambda: bool(page.state["head"]["is_closed"]))
        store.close()
        shown = page.ask("detail", n=2)
        html = page.tree.html()

    assert (shown["text"], shown["labels"], shown["system"]) == ("**Yes**", ["first"], None)
    assert "[first]" in html


class Sworn(nb.CustomEntry):
    """An application's entry whose text cannot be had, and which is nested deep."""

    kind = "tree-sworn"
    inside: object = None

    @property
    def text(self) -> str:
        raise RuntimeError("no text today")


# B36
def test_an_entry_of_an_application_that_raises_hides_nothing_else(store: Store) -> None:
    chat = opened(store)
    nested: list[object] = []
    for _ in range(900):
        nested = [nested]
    chat.append(nb.user("Before"), Sworn(inside=nested), nb.user("After"))
    with Page(chat) as page:
        shown = page.ask("detail", n=2)
        html = page.tree.html()
    chat.close()

    assert "RuntimeError" not in shown["json"]
    assert shown["text"] == "[the text of Sworn cannot be read: no text today]"
    assert ("Before" in html, "After" in html) == (True, True)


def test_an_answer_is_shown_with_all_that_is_on_record(store: Store) -> None:
    chat = opened(store, [thinking("Hm."), "**Yes**"], system="Be brief.", temperature=0.3)
    run = chat.run("May I?", show=None)
    chat.rate(2, 1, name="tone", by="me")
    chat.label(2, "first")
    with Page(chat) as page:
        shown = page.ask("detail", n=2)
    known = ("n", "id", "role", "model", "params", "run", "parent", "stop_reason", "system")

    assert [shown[name] for name in known] == [
        2, run.leaf_id, "assistant", "scripted", {"temperature": 0.3}, run.run_id, 1, "stop",
        "Be brief.",
    ]  # fmt: skip
    assert (shown["tokens"]["input"], shown["cost_usd"], shown["text"]) == (11, 0.25, "**Yes**")
    assert shown["labels"] == ["first"]
    assert shown["ratings"] == [{"name": "tone", "score": 1, "by": "me"}]
    assert shown["blocks"] == [
        {"type": "thinking", "text": "Hm.", "tokens": None},
        {"type": "markdown", "nodes": [["p", {"dir": "auto"}, [["strong", {}, ["Yes"]]]]]},
    ]
    assert json.loads(shown["json"])["payload"]["blocks"][1]["text"] == "**Yes**"
    chat.close()


# B31
def test_a_call_and_its_result_are_one_unit_seen_from_either(store: Store) -> None:
    step = calls(("look", {"city": "Paris"}), ("look", {"city": "Rome"}), text="Looking.")
    chat = opened(store, step, "Done.", tools=[look])
    chat.run("Q", show=None)
    with Page(chat) as page:
        answer, paris, rome = (page.ask("detail", n=n)["blocks"] for n in (2, 3, 4))
    first, second = answer[1:]

    assert [first["name"], json.loads(first["arguments"])] == ["look", {"city": "Paris"}]
    assert (first["result"]["text"], first["result"]["n"]) == ("seen Paris", 3)
    assert [one["media_type"] for one in first["result"]["images"]] == ["image/png"]
    assert base64.b64decode(first["result"]["images"][0]["data"]) == PNG
    assert second["result"]["is_error"]
    assert "no such place" in second["result"]["text"]
    assert (paris, rome) == ([first], [second])
    chat.close()


def test_a_call_shows_the_result_on_the_path_to_the_leaf(store: Store) -> None:
    chat = opened(store, calls(("look", {"city": "Paris"})), "Done.", tools=[look])
    chat.run("Q", show=None)
    call_id = chat[2].message.tool_calls[0].id  # type: ignore[attr-defined]
    result = chat[3].message.tool_results[0]  # type: ignore[attr-defined]
    chat.branch(2)
    other = type(result)(call_id, (nb.text("by hand"),))
    chat.append(type(chat[3])(message=type(chat[3].message)("tool", (other,))))  # type: ignore[attr-defined]
    with Page(chat) as page:
        here = page.ask("detail", n=2)["blocks"][0]["result"]
        chat.branch(4)
        there = page.ask("detail", n=2)["blocks"][0]["result"]

    assert call_id == other.call_id
    assert (here["n"], here["text"]) == (5, "by hand")
    assert (there["n"], there["text"]) == (3, "seen Paris")
    chat.close()


# B22
def test_a_call_without_a_result_says_so(store: Store) -> None:
    chat = opened(store, [CallDelta(0, name="look", arguments='{"ci'), ValueError("cut")])
    with pytest.raises(nb.errors.ModelError, match="cut"):
        chat.run("Q", show=None, tools=[look])
    with Page(chat) as page:
        shown = page.ask("detail", n=2)

    assert shown["blocks"][0]["result"] is None
    assert shown["blocks"][0]["arguments"] == '{"ci'
    assert "cut" in shown["error"]
    chat.close()


# B61
def test_pictures_come_as_bytes_and_what_a_page_could_run_as_a_file(store: Store) -> None:
    drawing = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"
    chat = opened(store, "Nice.")
    chat.run("See", nb.image(PNG, "image/png"), nb.file(b"a,b\n", "text/csv", "t.csv"), show=None)
    blob = type(chat[1].blocks[1].blob).of(drawing)  # type: ignore[attr-defined]
    block = ImageBlock(blob, "image/svg+xml", "d.svg")
    user = chat[1].message  # type: ignore[attr-defined]
    chat.append(type(chat[1])(message=type(user)("user", (block,))))
    with Page(chat) as page:
        shown, drawn = page.ask("detail", n=1)["blocks"], page.ask("detail", n=3)["blocks"]

    assert [block["type"] for block in shown] == ["text", "image", "file"]
    assert (shown[2]["name"], shown[2]["size"]) == ("t.csv", 4)
    assert drawn == [
        {"type": "file", "name": "d.svg", "media_type": "image/svg+xml", "size": len(drawing)}
    ]
    chat.close()


# B33
def test_numbers_that_a_browser_would_round_reach_the_page_as_text(store: Store) -> None:
    big = 2**53 + 1

    def count(number: int) -> int:
        """Count."""
        return number + 1

    chat = opened(store, calls(("count", {"number": big})), "Done.", tools=[count], seed=big)
    chat.run("Q", show=None)
    chat.rate(4, big, name="size")
    with Page(chat) as page:
        shown = page.ask("detail", n=2)
        page.until(lambda: "4" in page.state["marks"])
        rating = page.state["marks"]["4"]["ratings"][0]
        sent = json.dumps(page.sent)
    call = shown["blocks"][0]

    assert shown["params"] == {"seed": str(big)}
    assert call["arguments"] == f'{{\n  "number": {big}\n}}'
    assert call["result"]["text"] == str(big + 1)
    assert rating["score"] == str(big)
    assert f'"score": {big}' not in sent
    chat.close()


# case 41 case 50
def test_a_long_text_is_cut_with_a_count_and_whole_on_request(store: Store) -> None:
    text = "x" * (detailing.MOST_CHARS + 1_234)
    chat = opened(store, "unused")
    chat.append(nb.user(text))
    with Page(chat) as page:
        cut, whole = page.ask("detail", n=1), page.ask("detail", n=1, whole=True)
        longest = max(len(json.dumps(message).encode()) for message in page.sent)

    assert cut["hidden"] == "… 1,234 characters more"
    assert cut["blocks"] == [{"type": "text", "text": text[: detailing.MOST_CHARS]}]
    assert cut["text"] is None
    assert cut["json"].endswith("characters more")
    assert (whole["hidden"], whole["blocks"][0]["text"], whole["text"]) == (None, text, text)
    assert longest < 1_000_000
    chat.close()


# case 43
@pytest.mark.parametrize("trap", sorted(TRAPS))
def test_hostile_text_travels_as_text_in_every_place(trap: str) -> None:
    text = TRAPS[trap]
    chat = nb.open("s", store=":memory:", model=ScriptedModel(text or "x", name="m"))
    chat.append(nb.user(text or "x"), nb.assistant(text or "x"))
    if text.strip():
        chat.label(1, text)
    with Page(chat) as page:
        shown = page.ask("detail", n=2)["blocks"]
        said = page.ask("detail", n=1)["blocks"]
        tags = {node[0] for node in nodes_in(shown)}

    assert tags <= ALLOWED_TAGS
    assert said[0]["type"] == "text"
    chat.close()


def nodes_in(blocks: list[Any]) -> list[Any]:
    found, waiting = [], [node for block in blocks for node in block.get("nodes", ())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            found.append(node)
            waiting.extend(node[2])
    return found


def test_the_request_is_what_was_sent_with_secrets_hidden(store: Store) -> None:
    chat = opened(
        store, calls(("look", {"city": "P"})), "Done.", tools=[look], temperature=0.3, api_key="k3y"
    )
    chat.run("Q", show=None)
    with Page(chat) as page:
        first, last = (json.loads(page.ask("request", n=n)) for n in (2, 4))
        refusal = page.say("ask", "request", {"n": 9})["error"]

    assert [message["role"] for message in first["messages"]] == ["user"]
    assert [message["role"] for message in last["messages"]] == ["user", "assistant", "tool"]
    assert (last["temperature"], last["api_key"]) == (0.3, "***")
    assert refusal.startswith("entry #9 is not in session 's'")
    chat.close()


def test_search_finds_words_in_texts_calls_and_thinking_but_not_in_the_form(store: Store) -> None:
    chat = opened(
        store, [thinking("Perhaps Lyon"), *calls(("look", {"city": "Paris"}))], "A \"quoted\" Word",
        tools=[look],
    )  # fmt: skip
    chat.run("Where?\nThere", show=None)
    with Page(chat) as page:
        found = {
            text: page.ask("search", text=text)["ns"]
            for text in ("paris", "LYON", '"quoted" word', "there", "assistant", "blocks", "  ")
        }

    assert found == {
        "paris": [2, 3], "LYON": [2], '"quoted" word': [4], "there": [1], "assistant": [],
        "blocks": [], "  ": [],
    }  # fmt: skip
    chat.close()
