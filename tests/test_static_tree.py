"""A session as static HTML: nested as it reads, bounded in size, safe to look at."""

from __future__ import annotations

import pytest
from html_reader import TRAPS, Reader

import nbdurable as nb
from nbdurable.blocks import Message, TextBlock
from nbdurable.entries import MessageEntry
from nbdurable.notebook.static import MAX_BYTES, MAX_NODES, session_html
from nbdurable.stored import StoredEntry
from nbdurable.stores.memory import MemoryStore
from nbdurable.testing import ScriptedModel


def stored(n: int, parent: int | None, preview: str = "") -> StoredEntry:
    return StoredEntry(
        id=f"e{n}",
        session_id="s",
        parent_id=None if parent is None else f"e{parent}",
        kind="message",
        payload="{}",
        created_at=0,
        seq=n,
        n=n,
        role="user" if n % 2 else "assistant",
        preview=preview or f"text {n}",
    )


class TestStaticTree:
    def test_branches_that_were_left_are_nested_and_the_path_is_not(self) -> None:
        entries = [stored(1, None), stored(2, 1), stored(3, 2), stored(4, 2)]

        html = session_html(entries, "e4", title="demo")

        text = Reader(html).text
        assert text.startswith("demo · 4 entries · 2 branches · leaf #4● #1 user text 1")
        assert "○ #3 user text 3 1/2◆ #4 assistant text 4 2/2 · ← leaf" in text
        assert 'class="nbd-off nbd-side"' in html

    def test_a_branch_of_several_entries_folds_under_its_first_words(self) -> None:
        entries = [stored(1, None), stored(2, 1), stored(3, 2), stored(4, 3), stored(5, 2)]

        html = session_html(entries, "e5")

        side = html[html.index("<details open>") : html.index("</details>")] + "</details>"
        assert Reader(side).text.startswith("○ #3 user text 3 1/2○ #4 assistant text 4")

    def test_an_answers_first_words_are_read_without_their_marks(self) -> None:
        answer = "The **pool**, see `wait_ms`: | | a | | --- | --- | | b | 4 |"

        html = session_html([stored(1, None), stored(2, 1, answer)], "e2")

        assert "The pool, see wait_ms: a · b · 4 ·" in Reader(html).text

    def test_the_newest_texts_on_the_path_are_there_in_full(self) -> None:
        long = "**bold** " * 100
        entry = MessageEntry(id="e1", seq=1, n=1, message=Message("user", (TextBlock(long),)))

        html = session_html([entry], "e1")

        assert html.count("<strong>bold</strong>") == 100
        assert "<details open>" in html

    # case 42
    def test_a_large_tree_is_capped_and_says_how_much_is_left_out(self) -> None:
        entries = [stored(n, n - 1 or None, "&" * 120) for n in range(1, 10_001)]

        html = session_html(entries, "e10000", title="x")

        assert len(html.encode()) <= MAX_BYTES
        shown_entries = html.count("<li>") + html.count('<li class="nbd-off')
        assert f"… {10_000 - shown_entries:,} more" in html
        assert "◆" in html and shown_entries <= MAX_NODES

    def test_long_texts_do_not_push_a_tree_over_its_size(self) -> None:
        entries = [
            MessageEntry(
                id=f"e{n}",
                parent_id=f"e{n - 1}" if n > 1 else None,
                seq=n,
                n=n,
                message=Message("user", (TextBlock("<&> " * 5_000),)),
            )
            for n in range(1, 400)
        ]

        assert len(session_html(entries, "e399").encode()) <= MAX_BYTES

    # B43
    def test_an_experiment_is_one_folded_row_until_its_answer_is_gone_on_from(self) -> None:
        model = ScriptedModel(lambda request: f"T {request.params.get('temperature')}", repeat=True)
        with nb.open("s", store=MemoryStore(), model=model) as chat:
            chat.run("First", show=None)
            exp = chat.grid("Q", temperature=[0.1, 0.2, 0.3], name="warmth", show=None)
            tree = chat.widget()
            shown, stored = tree.html(), chat._repr_html_()
            exp[1].run.then("And?", show=None)
            chat.branch(exp[1].run)
            later = chat._repr_html_()
            tree.close()

        assert shown == stored
        assert "<details><summary>▤ <bdi>warmth</bdi>" in shown
        text = Reader(shown).text
        folded = text[text.index("▤ warmth 3 runs") :]
        assert all(f"assistant T 0.{at}" in folded for at in (1, 2, 3))
        assert "▤" not in text[: text.index("warmth") - 2]
        assert "▤" not in later
        assert "● #3 user Q" in Reader(later).text

    # case 43
    @pytest.mark.parametrize("name", TRAPS)
    def test_a_text_trap_makes_no_tag(self, name: str) -> None:
        trap = TRAPS[name]
        entry = MessageEntry(id="e1", seq=1, n=1, message=Message("user", (TextBlock(trap),)))

        reader = Reader(session_html([entry], "e1", title=trap[:200]))

        assert not {"script", "img", "svg"} & set(reader.tags)

    def test_no_entries_give_an_empty_tree(self) -> None:
        assert Reader(session_html([], None, title="s")).text == (
            "s · 0 entries · 0 branches · leaf at the root"
        )
