from __future__ import annotations

from collections.abc import Sequence

import pytest
from entry_words import (
    call,
    called,
    chained,
    compaction,
    note,
    result,
    said,
    shape,
    user,
)

from nbdurable.blocks import (
    StopReason,
)
from nbdurable.entries import Entry, OpaqueEntry
from nbdurable.views import (
    SUMMARY_HEADER,
    continuation_leaf,
    ends_in_reply,
    model_view,
    transcript_view,
    visible_entries,
)


class TestVisibility:
    # B34
    def test_meta_is_in_the_prompt_and_not_in_the_transcript(self) -> None:
        path = chained(user("skill", meta=True), user("q"))

        assert shape(model_view(path)) == ["u:skill", "u:q"]
        assert [entry.id for entry in transcript_view(path)] == ["e1"]

    # B34 case 2
    def test_a_hidden_message_in_mid_path_leaves_a_transcript_of_four(self) -> None:
        path = chained(user("q"), said("a"), user("hidden", meta=True), user("r"), said("b"))

        assert [entry.id for entry in transcript_view(path)] == ["e0", "e1", "e3", "e4"]

    # B35
    def test_an_ephemeral_message_is_sent_where_the_caller_puts_it_and_never_shown(self) -> None:
        path = chained(user("the build is red", ephemeral=True), user("q"))

        assert shape(model_view(path)) == ["u:the build is red", "u:q"]
        assert [entry.id for entry in transcript_view(path)] == ["e1"]

    # B36 B37
    @pytest.mark.parametrize("entry", [note(), OpaqueEntry(raw="{}", stored_kind="new")])
    @pytest.mark.parametrize("place", [0, 1, 2])
    def test_custom_and_opaque_entries_are_shown_and_never_sent(
        self, entry: Entry, place: int
    ) -> None:
        parts: list[Entry] = [user("q"), said("a")]
        parts.insert(place, entry)
        path = chained(*parts)

        assert shape(model_view(path)) == ["u:q", "a:a"]
        assert transcript_view(path) == path

    # B34
    def test_a_compaction_hides_nothing_from_the_transcript(self) -> None:
        path = chained(user("q"), said("a"), compaction("s", None), user("r"))

        assert transcript_view(path) == path


class TestCompacted:
    # B50
    def test_the_summary_is_marked_as_one_before_everything_kept(self) -> None:
        path = chained(
            user("q1"), said("a1"), user("q2"), said("a2"), compaction("so far", "e2"), user("q3")
        )

        view = model_view(path)

        assert view.messages[0].role == "user"
        assert view.messages[0].text == f"{SUMMARY_HEADER}\n\nso far"
        assert view.entry_ids == ("e4", "e2", "e3", "e5")

    # B50
    def test_only_the_newest_summary_is_sent(self) -> None:
        path = chained(
            user("q1"), said("a1"), compaction("one", None), user("q2"), compaction("two", "e3")
        )

        assert model_view(path).entry_ids == ("e4", "e3")

    # B50
    def test_a_second_compaction_never_brings_back_what_the_first_hid(self) -> None:
        path = chained(
            user("q1"), said("a1"), compaction("one", None), user("q2"), compaction("two", "e0")
        )

        assert model_view(path).entry_ids == ("e4",)

    # B50
    def test_entries_kept_by_both_compactions_stay(self) -> None:
        path = chained(
            user("q1"),
            said("a1"),
            user("q2"),
            said("a2"),
            compaction("one", "e2"),
            user("q3"),
            compaction("two", "e3"),
        )

        assert model_view(path).entry_ids == ("e6", "e3", "e5")

    # B52
    @pytest.mark.parametrize("kept", ["elsewhere", None, "e3"])
    def test_a_first_kept_entry_not_before_it_on_the_path_keeps_nothing(
        self, kept: str | None
    ) -> None:
        path = chained(user("q"), said("a"), compaction("s", kept), user("r"))

        assert model_view(path).entry_ids == ("e2", "e3")

    # B52
    def test_a_path_to_before_the_compaction_has_the_full_view(self) -> None:
        path = chained(user("q"), said("a"), compaction("s", None))

        assert model_view(path[:2]).entry_ids == ("e0", "e1")
        assert model_view(path).entry_ids == ("e2",)

    # B20
    def test_input_not_yet_stored_is_sent_after_a_compaction_that_keeps_nothing(self) -> None:
        path = [*chained(user("q"), compaction("s", None)), user("draft")]

        assert shape(model_view(path))[1:] == ["u:draft"]

    # B50
    def test_visible_entries_hold_the_summary_first(self) -> None:
        path = chained(user("q"), note(), said("a"), compaction("s", "e2"), user("r"))

        assert [entry.id for entry in visible_entries(path)] == ["e3", "e2", "e4"]


class TestContinuing:
    # B22
    @pytest.mark.parametrize("stop", ["stop", "length", None])
    def test_a_finished_reply_leaves_nothing_to_continue(self, stop: StopReason | None) -> None:
        assert ends_in_reply(chained(user("q"), said("a", stop=stop), note()))

    # B22
    @pytest.mark.parametrize(
        "end",
        [
            (),
            (said("half", stop="error"),),
            (said("half", stop="aborted"), note()),
            (called("c"),),
            (called("c"), result("c")),
            (said(call("c"), stop=None),),
            (said("a"), user("more", meta=True)),
        ],
    )
    def test_every_other_end_can_be_continued(self, end: Sequence[Entry]) -> None:
        assert not ends_in_reply(chained(user("q"), *end))

    # B22 B49
    def test_a_compaction_after_a_finished_reply_changes_nothing(self) -> None:
        assert ends_in_reply(chained(user("q"), said("a"), compaction("s", None)))

    # B22
    def test_an_empty_path_ends_in_no_reply(self) -> None:
        assert not ends_in_reply([])
        assert continuation_leaf([]) is None

    # B22
    @pytest.mark.parametrize("stop", ["error", "aborted"])
    @pytest.mark.parametrize("tail", [(), (note(),), (said("", stop="error"),)])
    def test_a_failed_answer_is_asked_again_from_its_parent(
        self, stop: StopReason, tail: Sequence[Entry]
    ) -> None:
        path = chained(user("q"), called("c"), result("c"), said("half", stop=stop), *tail)

        assert continuation_leaf(path) == "e2"

    # B22
    def test_a_failed_answer_at_the_root_is_asked_again_from_the_root(self) -> None:
        assert continuation_leaf(chained(said("half", stop="error"))) is None

    # B22
    def test_any_other_path_is_continued_from_its_leaf(self) -> None:
        path = chained(user("q"), called("c"), result("c"), note())

        assert continuation_leaf(path) == "e3"
