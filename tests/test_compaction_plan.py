from __future__ import annotations

from collections.abc import Sequence

import pytest
from entry_words import any_path, call, called, chained, compaction, note, result, said, user
from hypothesis import given
from hypothesis import strategies as st

from nbdurable.blocks import Blob, ImageBlock, Message, TextBlock, ToolResultBlock
from nbdurable.compaction import (
    SUMMARY_PROMPT,
    Plan,
    estimate_tokens,
    plan_compaction,
    summary_messages,
    turns,
)
from nbdurable.entries import CompactionEntry, Entry, MessageEntry
from nbdurable.pairing import pair
from nbdurable.views import SUMMARY_HEADER, model_view, visible_entries


def ids(entries: Sequence[Entry]) -> list[str]:
    return [entry.id for entry in entries]


def planned(path: Sequence[Entry], keep_turns: int = 0) -> tuple[list[str], str | None] | None:
    plan = plan_compaction(path, keep_turns)
    return plan and (ids(plan.summarise), plan.first_kept_id)


TALK = chained(user("q1"), said("a1"), user("q2"), said("a2"), user("q3"), said("a3"))


class TestTurns:
    # B49
    def test_a_turn_is_a_user_message_and_everything_up_to_the_next(self) -> None:
        path = chained(user("q"), called("c"), result("c"), note(), said("a"), user("r"))

        assert [ids(turn.entries) for turn in turns(path)] == [
            ["e0", "e1", "e2", "e3", "e4"],
            ["e5"],
        ]

    # B49
    def test_meta_entries_directly_before_a_user_message_belong_to_its_turn(self) -> None:
        path = chained(
            user("q"), said("a"), user("m1", meta=True), user("m2", meta=True), user("r"), said("b")
        )

        assert [ids(turn.entries) for turn in turns(path)] == [
            ["e0", "e1"],
            ["e2", "e3", "e4", "e5"],
        ]

    # B49
    def test_a_meta_entry_in_mid_turn_starts_no_turn(self) -> None:
        path = chained(user("q"), user("m", meta=True), said("a"))

        assert len(turns(path)) == 1

    # B49
    def test_what_precedes_the_first_user_message_is_a_turn(self) -> None:
        path = chained(said("hello", stop=None), user("q"), said("a"))

        assert [ids(turn.entries) for turn in turns(path)] == [["e0"], ["e1", "e2"]]

    # B49
    @given(any_path)
    def test_turns_hold_every_entry_once_in_order(self, path: list[Entry]) -> None:
        assert [entry for turn in turns(path) for entry in turn.entries] == path


class TestKeeping:
    # B49
    @pytest.mark.parametrize(
        ("keep", "first_kept"), [(0, None), (1, "e4"), (2, "e2")], ids=["none", "one", "two"]
    )
    def test_the_last_turns_are_kept(self, keep: int, first_kept: str | None) -> None:
        plan = plan_compaction(TALK, keep)

        assert plan is not None
        assert plan.first_kept_id == first_kept
        assert ids(plan.summarise) == ids(TALK[: len(TALK) - 2 * keep])

    # B49
    @pytest.mark.parametrize("keep", [3, 4, 1_000])
    def test_nothing_is_planned_when_every_turn_is_kept(self, keep: int) -> None:
        assert plan_compaction(TALK, keep) is None

    # B49
    @pytest.mark.parametrize("path", [[], chained(note(), note()), chained(said(" "), note())])
    def test_nothing_is_planned_where_the_model_reads_nothing(self, path: list[Entry]) -> None:
        assert plan_compaction(path) is None

    # B49
    def test_meta_before_a_kept_turn_is_kept_with_it(self) -> None:
        path = chained(user("q"), said("a"), user("skill", meta=True), user("r"), said("b"))

        assert planned(path, 1) == (["e0", "e1"], "e2")

    # B49
    def test_meta_that_waits_for_the_next_user_message_is_kept(self) -> None:
        path = chained(user("q"), said("a"), user("skill", meta=True))

        assert planned(path, 0) == (["e0", "e1"], "e2")
        assert planned(path, 1) is None

    # B36
    def test_custom_entries_are_not_summarised(self) -> None:
        path = chained(user("q"), note(), said("a"), note())

        assert planned(path) == (["e0", "e2"], None)

    # B35
    def test_an_ephemeral_message_never_reaches_a_summary(self) -> None:
        path = chained(user("secret", ephemeral=True), user("q"), said("a"))

        assert planned(path) == (["e1", "e2"], None)

    def test_a_negative_number_of_turns_is_refused(self) -> None:
        with pytest.raises(ValueError, match="keep_turns is -1; give 0 or more"):
            plan_compaction(TALK, -1)


class TestWaitingTurns:
    # B49
    @pytest.mark.parametrize(
        "end",
        [
            (),
            (called("c"),),
            (called("c"), result("c")),
            (said("half", stop="error"),),
            (said("half", stop="aborted"), note()),
        ],
        ids=["asked", "called", "answered", "error", "aborted"],
    )
    def test_a_user_turn_without_a_finished_reply_is_never_swallowed(
        self, end: Sequence[Entry]
    ) -> None:
        path = chained(user("q"), said("a"), user("r"), *end)

        assert planned(path) == (["e0", "e1"], "e2")

    # B49
    def test_a_single_unanswered_turn_gives_no_plan(self) -> None:
        assert plan_compaction(chained(user("q"), called("c"), result("c"))) is None

    # B49 B20
    def test_user_messages_of_one_input_wait_together(self) -> None:
        path = chained(user("q"), said("a"), user("the document"), user("the question"))

        assert planned(path) == (["e0", "e1"], "e2")

    # B49
    def test_a_failed_turn_that_was_given_up_is_summarised(self) -> None:
        path = chained(user("q"), said("half", stop="error"), user("other"), said("a"), user("r"))

        assert planned(path) == (["e0", "e1", "e2", "e3"], "e4")


class TestPairs:
    steps = (called("c1"), result("c1"), called("c2"), result("c2"), called("c3"), result("c3"))

    # B49 case 18
    def test_a_cut_between_a_call_and_its_result_moves_back_to_the_call(self) -> None:
        path = chained(
            user("q"), said("a"), user("r"), called("c"), user("hurry"), result("c"), said("b")
        )

        assert planned(path, 1) == (["e0", "e1", "e2"], "e3")

    # B49
    def test_a_cut_moves_back_over_interleaved_calls(self) -> None:
        path = chained(
            user("q"), called("c1"), user("r"), called("c2"), result("c1"), user("s"), result("c2"),
            said("a"),
        )  # fmt: skip

        assert planned(path, 1) == (["e0"], "e1")

    # B49
    @given(any_path, st.integers(0, 4), st.one_of(st.none(), st.integers(0, 6)))
    def test_no_cut_parts_a_call_from_its_result(
        self, path: list[Entry], keep: int, limit: int | None
    ) -> None:
        plan = plan_compaction(path, keep, max_keep_tokens=limit)

        if plan is not None:
            kept_from = len([e for e in plan.summarise if isinstance(e, MessageEntry)])
            for at, answer_at in answered(visible_entries(path)):
                assert (at < kept_from) == (answer_at < kept_from)

    # B49 case 18
    @pytest.mark.parametrize("limit", range(1, 40, 3))
    def test_a_cut_in_a_turn_of_three_calls_never_starts_on_a_result(self, limit: int) -> None:
        path = chained(user("q" * 400), *self.steps, said("end"))

        plan = plan_compaction(path, 1, max_keep_tokens=limit)

        assert plan is not None
        assert plan.first_kept_id in {"e1", "e3", "e5", "e7"}


def answered(visible: Sequence[Entry]) -> list[tuple[int, int]]:
    messages = [entry for entry in visible if isinstance(entry, MessageEntry)]
    slots = [slot for held in pair(messages).slots.values() for slot in held.values()]
    return [(slot.at, slot.answer_at) for slot in slots if slot.answer is not None]


class TestLimit:
    @staticmethod
    def one(entry: Entry) -> int:
        return 1

    # B49
    @pytest.mark.parametrize(("limit", "first_kept"), [(6, "e0"), (5, "e2"), (4, "e2"), (2, "e4")])
    def test_fewer_turns_are_kept_where_they_are_too_large(
        self, limit: int, first_kept: str
    ) -> None:
        plan = plan_compaction(TALK, 3, max_keep_tokens=limit, estimate=self.one)

        assert (plan.first_kept_id if plan else "e0") == first_kept

    # B49
    @pytest.mark.parametrize(("limit", "first_kept"), [(5, "e3"), (4, "e5"), (1, "e7"), (0, "e7")])
    def test_one_oversized_turn_is_cut_before_an_assistant_message(
        self, limit: int, first_kept: str
    ) -> None:
        path = chained(user("q"), *TestPairs.steps, said("end"))

        plan = plan_compaction(path, 1, max_keep_tokens=limit, estimate=self.one)

        assert plan is not None
        assert plan.first_kept_id == first_kept

    # B49
    def test_an_oversized_turn_that_waits_for_its_reply_is_kept_whole(self) -> None:
        path = chained(user("q"), said("a"), user("r"), *TestPairs.steps)

        plan = plan_compaction(path, 2, max_keep_tokens=1, estimate=self.one)

        assert plan is not None
        assert plan.first_kept_id == "e2"

    def test_sizes_are_estimated_at_four_characters_a_token(self) -> None:
        picture = ToolResultBlock("c", (TextBlock("12345678"), ImageBlock(Blob.of(b"x"))))
        shown = MessageEntry(message=Message("tool", (picture,)))

        assert estimate_tokens(user("12345")) == 2
        assert estimate_tokens(said(call("c", "ab"))) == 1
        assert estimate_tokens(compaction("1234", None)) == 1
        assert estimate_tokens(shown) == 1_002
        assert estimate_tokens(note()) == 0


class TestAgain:
    # B50
    def test_a_second_compaction_summarises_the_first_summary(self) -> None:
        path = chained(user("q"), said("a"), compaction("one", None), user("r"), said("b"))

        assert planned(path) == (["e2", "e3", "e4"], None)

    # B49 B50
    def test_nothing_is_planned_over_an_earlier_summary_alone(self) -> None:
        path = chained(user("q"), said("a"), compaction("one", None), user("r"), said("b"))

        assert planned(path, 1) is None
        assert planned(path[:3]) is None

    # B50
    @pytest.mark.parametrize("keep", [2, 3, 1_000])
    def test_a_larger_number_of_turns_brings_nothing_back(self, keep: int) -> None:
        path = chained(*TALK, compaction("one", "e4"), user("q4"), said("a4"))

        assert planned(path, keep) is None

    # B50
    @given(any_path, st.integers(0, 4))
    def test_a_plan_made_real_shows_the_summary_and_everything_kept(
        self, path: list[Entry], keep: int
    ) -> None:
        plan = plan_compaction(path, keep)

        if plan is not None:
            before = ids(visible_entries(path))
            summary = CompactionEntry(id="new", summary="s", first_kept_id=plan.first_kept_id)
            after = ids(visible_entries([*path, summary]))
            assert ids(plan.summarise) + after[1:] == before
            assert after[0] == "new"

    # B49
    @given(any_path, st.integers(0, 4))
    def test_a_plan_changes_no_entry(self, path: list[Entry], keep: int) -> None:
        before = [repr(entry) for entry in path]

        plan_compaction(path, keep)

        assert [repr(entry) for entry in path] == before


class TestSummaryMessages:
    # B51
    def test_the_summariser_reads_what_is_replaced_and_then_the_prompt(self) -> None:
        plan = plan_compaction(TALK, 2)
        assert plan is not None

        messages = summary_messages(plan)

        assert [(m.role, m.text) for m in messages] == [
            ("user", "q1"),
            ("assistant", "a1"),
            ("user", SUMMARY_PROMPT),
        ]

    # B51
    def test_the_callers_prompt_replaces_ours(self) -> None:
        plan = Plan(None, tuple(TALK))

        assert summary_messages(plan, "In one line.")[-1].text == "In one line."

    # B51
    def test_calls_and_results_are_written_out_as_text(self) -> None:
        image = ImageBlock(Blob.of(b"png"))
        answer = ToolResultBlock("c", (TextBlock("42"), image), name="look")
        path = chained(
            user("q"), called("c", "lost"), MessageEntry(message=Message("tool", (answer,)))
        )

        messages = summary_messages(Plan(None, tuple(path)))

        assert [(m.role, m.text) for m in messages[1:4]] == [
            ("assistant", "[called tool look with {}]\n[called tool look with {}]"),
            ("user", "[result of tool look: 42]"),
            ("user", "[error of tool look: No result was recorded for this call.]"),
        ]
        assert messages[2].blocks[1] is image

    # B50
    def test_an_earlier_summary_comes_first_and_marked(self) -> None:
        path = chained(user("q"), said("a"), compaction("one", None), user("r"), said("b"))
        plan = plan_compaction(path)
        assert plan is not None

        first = summary_messages(plan)[0]

        assert first.text == f"{SUMMARY_HEADER}\n\none"

    # B51 B45
    @given(any_path, st.integers(0, 3))
    def test_no_request_holds_tools_or_blanks_or_ends_in_an_assistant_message(
        self, path: list[Entry], keep: int
    ) -> None:
        plan = plan_compaction(path, keep)

        if plan is not None:
            messages = summary_messages(plan)
            assert messages[-1].role == "user"
            assert not any(m.role == "tool" or m.tool_calls or m.tool_results for m in messages)
            assert all(message.blocks for message in messages)
            assert len(messages) == len(model_view(plan.summarise).messages) + 1
