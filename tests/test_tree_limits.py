"""What a shown tree never does: send much at once, send twice, tell a secret."""

from __future__ import annotations

import json
import logging
import threading
import warnings
from typing import Any

import pytest
from treeing import Page

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.base import Store

MARK = "s3cr3t"
SECRETS: dict[str, Any] = {
    "api_key": f"sk-{MARK}",
    "api_base": f"https://user:{MARK}@example.invalid/v1",
    "extra_headers": {"X-Api-Key": MARK},
    "extra_body": {"token": MARK},
    "aws_secret_access_key": MARK,
}


# case 41
def test_a_large_session_opens_small_and_one_entry_comes_when_it_is_asked_for(
    store: Store,
) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("x"))
    text = "word " * 20_000
    for first in range(0, 500, 50):
        chat.append(*(nb.user(f"{n} {text}") for n in range(first, first + 50)))
    with Page(chat) as page:
        opened = sum(len(json.dumps(message)) for message in page.sent)
        largest_open = max(len(json.dumps(message)) for message in page.sent)
        traits = len(str(page.tree.get_state(["uid", "error"])))
        shown = page.ask("detail", n=250)
        largest = max(len(json.dumps(message)) for message in page.sent)

    assert opened < 100_000
    assert (traits < 200, largest_open < 1_000_000, largest < 1_000_000) == (True, True, True)
    assert shown["blocks"][0]["text"] == f"249 {text}"
    chat.close()


def test_ten_thousand_entries_are_sent_in_less_than_three_megabytes() -> None:
    chat = nb.open("s", store=":memory:", model=ScriptedModel("x"))
    for _ in range(20):
        chat.append(*(nb.user("word " * 200) for _ in range(500)))
    with Page(chat) as page:
        sent = sum(len(json.dumps(message)) for message in page.sent)

        assert len(page.state["columns"]["at"]) == 10_000
        assert sent < 3_000_000
    chat.close()


# case 46
def test_what_a_page_knows_is_not_sent_again(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("An answer."))
    for number in range(100):
        chat.append(nb.user(f"Question {number}"))
    with Page(chat) as page:
        page.settled()
        sent = len(page.sent)
        chat.label(7, "here")
        chat.run("More", show=None)
        page.idle()
        later = json.dumps(page.sent[sent:])

    assert "Question 5" not in later
    assert len(later) < 3_000
    chat.close()


# B64
def test_half_a_character_in_a_stream_a_label_or_a_prompt_reaches_the_page(store: Store) -> None:
    go = threading.Event()
    chat = nb.open("s", store=store, model=ScriptedModel(["half \ud83d", go, " whole"]))
    with Page(chat) as page:
        page.act("run", text="Q \ud83d")
        page.until(lambda: [row["text"] for row in page.state["live"]] == ["half \ufffd"])
        go.set()
        page.idle()
        page.act("label", n=1, text="L \ud83d")

        assert page.settled()["marks"]["1"]["labels"] == ["L \ufffd"]
    chat.close()


# B33
def test_a_rating_beyond_what_a_browser_counts_reaches_the_page_as_text(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("x"))
    chat.append(nb.user("Q"))
    chat.rate(1, 2**60, name="big")
    with Page(chat) as page:
        (rating,) = page.settled()["marks"]["1"]["ratings"]
    chat.close()

    assert rating == {"name": "big", "score": str(2**60), "by": None}


# B69
def test_no_secret_reaches_state_traits_repr_messages_or_errors(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def look() -> str:
        """Look."""
        return "seen"

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ScriptedModel(calls(("look", {})), "Done.", ValueError("failed"))
        chat = nb.open("s", store=store, model=model, tools=[look], temperature=0.5, **SECRETS)
    with caplog.at_level(logging.DEBUG), Page(chat) as page:
        page.act("run", text="Q")
        page.idle()
        page.act("rerun", n=4)
        page.idle()
        refused = page.refused("rerun", n=4, params={"api_key": f"sk-{MARK}"})
        for n in range(1, page.state["head"]["entries"] + 1):
            page.ask("detail", n=n, whole=True)
            page.ask("request", n=n)
        code = page.ask("code", name="rerun", args={"n": 4, "params": {"temperature": 0.1}})
        page.ask("estimate", n=1, count=2)
        said = repr([page.sent, page.state, page.tree, page.tree.get_state(), page.tree.error])

    assert page.state["head"]["params"] == {"temperature": 0.5}
    assert "'api_key' is none" in refused or "no such object" in refused
    assert MARK not in said + refused + str(code) + caplog.text
    chat.close()
