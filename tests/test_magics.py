"""``%%chat`` in a real IPython shell: a cell's text is a prompt, its session stays open."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answering import says

import nbdurable as nb
from nbdurable.notebook.magics import Chats, Usage
from nbdurable.testing import FakeOpenAI
from nbdurable.testing.steps import text


@pytest.fixture
def shell() -> Iterator[Any]:
    from IPython.core.interactiveshell import InteractiveShell

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what IPython itself warns of while it starts
        made = InteractiveShell()
    made.history_manager.enabled = False
    made.run_line_magic("load_ext", "nbdurable")
    yield made
    made.run_line_magic("unload_ext", "nbdurable")
    made.history_manager.end_session()
    InteractiveShell.clear_instance()


@pytest.fixture
def provider(fake: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a model that a provider on loopback answers for, as any user would name it."""
    fake.script(text("First."), text("Second."))
    monkeypatch.setenv("OPENAI_API_BASE", fake.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    return "openai/scripted"


class TestInAShell:
    def test_a_cell_is_a_prompt_of_the_named_session(self, shell: Any, tmp_path: Path) -> None:
        chat = nb.open("s", store=tmp_path / "c.duckdb", model=says("An answer."))
        shell.user_ns["chat"] = chat

        run = shell.run_cell_magic("chat", "chat", "What is {this}?\n\nTell me.\n")

        assert run.text == "An answer."
        assert chat[1].text == "What is {this}?\n\nTell me."
        chat.close()

    def test_what_is_wrong_is_told_in_one_line(self, shell: Any) -> None:
        from IPython.core.error import UsageError

        with pytest.raises(UsageError, match="no session is named; write %%chat"):
            shell.run_cell_magic("chat", "", "Hello")

    def test_unloading_takes_the_magic_away(self, shell: Any) -> None:
        shell.run_line_magic("unload_ext", "nbdurable")

        assert shell.find_cell_magic("chat") is None
        shell.run_line_magic("load_ext", "nbdurable")
        assert shell.find_cell_magic("chat") is not None


class TestChats:
    def test_the_session_stays_open_and_goes_on(self, tmp_path: Path, provider: str) -> None:
        chats, store = Chats(), str(tmp_path / "c.duckdb")

        first = chats.chat(f"talk --store {store} --model {provider}", "One", {})
        second = chats.chat(f"talk --store {store}", "Two", {})

        chats.close()
        assert (first.model, second.model) == (provider, provider)
        seen = nb.open("talk", store=store, model=says("unused"))
        assert [entry.text for entry in seen.entries()] == ["One", "First.", "Two", "Second."]
        seen.close()

    def test_options_are_for_their_cell(self) -> None:
        chat = nb.open("s", store=":memory:", model=says("A."))

        run = Chats().chat("c --system 'Be brief.' --temperature 0.5", "Q", {"c": chat})

        assert run.messages[-1].reply.params == {"temperature": 0.5}
        assert "Be brief." in str(chat.runs_df()["system"].tolist())

    # B22
    def test_an_empty_cell_goes_on_with_what_is_unfinished(self) -> None:
        chat = nb.open("s", store=":memory:", model=says("A late answer."))
        chat.append(nb.user("Q"))

        assert Chats().chat("c", "\n", {"c": chat}).text == "A late answer."

    def test_an_empty_cell_with_nothing_to_go_on_with_says_so(self) -> None:
        chat = nb.open("s", store=":memory:", model=says("A."))
        chat.run("Q", show=None)

        with pytest.raises(nb.errors.RunError, match="nothing to continue"):
            Chats().chat("c", "", {"c": chat})

    def test_a_session_closed_meanwhile_is_opened_again(
        self, tmp_path: Path, provider: str
    ) -> None:
        chats, line = Chats(), f"talk --store {tmp_path / 'c.duckdb'} --model {provider}"
        chats.chat(line, "One", {})
        chats.close()

        assert chats.chat(line, "Two", {}).text == "Second."
        chats.close()

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("s --colour red", "unrecognized arguments: --colour red; write %%chat"),
            ("s --temperature warm", "argument --temperature: invalid float value: 'warm'; write"),
            ("'s", "cannot be read: No closing quotation; close its quotes"),
            ("c --replay", "c is a session that is open here, so --store and --replay mean"),
        ],
    )
    def test_a_line_that_cannot_be_understood_is_refused(self, line: str, message: str) -> None:
        chat = nb.open("s", store=":memory:", model=says("A."))

        with pytest.raises(Usage) as refused:
            Chats().chat(line, "Q", {"c": chat})
        assert message in str(refused.value)
        assert chat.entries() == []
