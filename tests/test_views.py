from __future__ import annotations

import pytest
from entry_words import (
    call,
    called,
    chained,
    compaction,
    kinds,
    note,
    result,
    said,
    shape,
    user,
)

from nbdurable.blocks import (
    Blob,
    Block,
    ImageBlock,
    Message,
    OpaqueBlock,
    Reply,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from nbdurable.entries import MessageEntry
from nbdurable.views import (
    NO_RESULT,
    OUTCOME_UNKNOWN,
    model_view,
)


class TestPairing:
    # B44 case 14
    def test_a_missing_result_is_synthesised_next_to_the_stored_one(self) -> None:
        path = chained(user("q"), called("c1", "c2"), result("c2"), user("go on"))

        view = model_view(path)

        assert shape(view) == ["u:q", "a:?c1,?c2", "t:xc1", "t:=c2", "u:go on"]
        assert view.entry_ids == ("e0", "e1", None, "e2", "e3")
        assert view.messages[2].text == NO_RESULT
        assert kinds(view) == ["missing_result"]

    # B44
    def test_results_are_sent_in_call_order(self) -> None:
        path = chained(user("q"), called("c1", "c2"), result("c2"), result("c1"))

        assert shape(model_view(path)) == ["u:q", "a:?c1,?c2", "t:=c1", "t:=c2"]

    # B44
    def test_a_later_result_is_hoisted_before_the_user_message_between(self) -> None:
        path = chained(user("q"), called("c1"), user("wait"), result("c1"))

        view = model_view(path)

        assert shape(view) == ["u:q", "a:?c1", "t:=c1", "u:wait"]
        assert view.repairs == ()

    # B44 case 19
    def test_call_ids_reused_across_steps_keep_their_own_results(self) -> None:
        path = chained(
            user("q"), called("c"), result("c", "one"), called("c"), result("c", "two"), said("end")
        )

        texts = [m.text for m in model_view(path).messages if m.role == "tool"]

        assert texts == ["one", "two"]

    # B44 case 19
    def test_a_result_goes_to_the_nearest_message_with_that_call_open(self) -> None:
        path = chained(user("q"), called("c"), user("again"), called("c"), result("c"))

        assert shape(model_view(path)) == ["u:q", "a:?c", "t:xc", "u:again", "a:?c", "t:=c"]

    # B44 case 19
    def test_a_call_id_twice_in_one_message_is_sent_once(self) -> None:
        path = chained(user("q"), called("c", "c"), result("c", "one"), result("c", "two"))

        view = model_view(path)

        assert shape(view) == ["u:q", "a:?c", "t:=c"]
        assert view.messages[2].text == "one"
        assert sorted(kinds(view)) == ["duplicate_call", "duplicate_result"]

    # B44 case 16
    def test_a_result_without_a_call_on_the_path_is_left_out(self) -> None:
        path = chained(user("q"), result("gone"), said("a"))

        view = model_view(path)

        assert shape(view) == ["u:q", "a:a"]
        assert [(r.kind, r.entry_id, r.call_id) for r in view.repairs] == [
            ("orphan_result", "e1", "gone")
        ]
        assert view.repairs[0].text == "a tool result without its call is left out"

    # B44 case 16
    def test_a_result_kept_after_a_summary_of_its_call_is_left_out(self) -> None:
        path = chained(user("q"), called("c"), result("c"), compaction("s", "e2"), user("next"))

        view = model_view(path)

        assert view.entry_ids == ("e3", "e4")
        assert kinds(view) == ["orphan_result"]

    # B44
    def test_a_second_result_of_one_call_is_left_out(self) -> None:
        path = chained(user("q"), called("c"), result("c", "one"), result("c", "two"))

        view = model_view(path)

        assert [m.text for m in view.messages] == ["q", "", "one"]
        assert kinds(view) == ["duplicate_result"]

    # B40
    @pytest.mark.parametrize("end", [2, 3, 4])
    def test_a_branch_onto_open_calls_answers_the_rest_by_errors(self, end: int) -> None:
        path = chained(user("q"), called("c1", "c2"), result("c1"), result("c2"))

        marks = [word[2] for word in shape(model_view(path[:end]))[2:]]

        assert marks == ["="] * (end - 2) + ["x"] * (4 - end)

    # B29
    def test_a_lost_call_of_a_tool_with_effects_has_an_unknown_outcome(self) -> None:
        path = chained(user("q"), called(call("c1", "pay"), call("c2", "look")))  # type: ignore[arg-type]

        view = model_view(path, effects=frozenset({"pay"}))

        assert [m.text for m in view.messages[2:]] == [OUTCOME_UNKNOWN, NO_RESULT]
        assert view.messages[2].tool_results[0].name == "pay"

    # B36 B18
    def test_a_custom_entry_never_comes_between_a_call_and_its_result(self) -> None:
        path = chained(user("q"), called("c"), note(), result("c"), note())

        assert shape(model_view(path)) == ["u:q", "a:?c", "t:=c"]

    # B44
    def test_results_inside_a_user_message_are_hoisted_and_its_text_stays(self) -> None:
        both = Message("user", (ToolResultBlock("c", (TextBlock("r"),)), TextBlock("and now")))
        path = chained(user("q"), called("c"), MessageEntry(message=both))

        assert shape(model_view(path)) == ["u:q", "a:?c", "t:=c", "u:and now"]

    # B44
    def test_several_results_in_one_message_are_sent_one_by_one(self) -> None:
        both = Message("tool", (ToolResultBlock("c2"), ToolResultBlock("c1")))
        path = chained(user("q"), called("c1", "c2"), MessageEntry(message=both))

        view = model_view(path)

        assert shape(view)[2:] == ["t:=c1", "t:=c2"]
        assert view.entry_ids == ("e0", "e1", "e2", "e2")

    # B31
    def test_an_image_in_a_result_is_sent(self) -> None:
        block = ToolResultBlock("c", (ImageBlock(Blob.of(b"png")), TextBlock(" \n")))
        path = chained(user("q"), called("c"), MessageEntry(message=Message("tool", (block,))))

        sent = model_view(path).messages[2].tool_results[0]

        assert sent.content == (ImageBlock(Blob.of(b"png")),)


class TestUnfinishedCalls:
    # B22 case 23
    def test_a_call_cut_in_mid_stream_is_left_out_and_its_text_stays(self) -> None:
        half = ToolCallBlock("c", "write", '{"path": "a.tx', complete=False)
        path = chained(user("q"), said("I will", half, stop="error"), user("go on"))

        view = model_view(path)

        assert shape(view) == ["u:q", "a:I will", "u:go on"]
        assert kinds(view) == ["incomplete_call"]
        assert path[1].message.tool_calls[0].raw == '{"path": "a.tx'  # type: ignore[attr-defined]

    # B22 case 23
    @pytest.mark.parametrize("stop", ["error", "aborted"])
    def test_calls_of_a_failed_answer_are_left_out_with_their_results(
        self, stop: StopReason
    ) -> None:
        path = chained(user("q"), said(call("c"), stop=stop), result("c"), user("go on"))

        view = model_view(path)

        assert shape(view) == ["u:q", "u:go on"]
        assert kinds(view) == ["incomplete_call", "orphan_result"]

    # B22
    @pytest.mark.parametrize("stop", ["error", "aborted"])
    def test_a_later_prompt_holds_the_partial_text(self, stop: StopReason) -> None:
        path = chained(user("q"), said("half an ans", stop=stop), user("go on"))

        assert shape(model_view(path)) == ["u:q", "a:half an ans", "u:go on"]

    # B30
    @pytest.mark.parametrize("stop", ["length", "stop"])
    def test_a_call_under_another_stop_reason_was_not_executed(self, stop: StopReason) -> None:
        path = chained(user("q"), said(call("c"), stop=stop), user("go on"))

        view = model_view(path, effects=frozenset({"look"}))

        assert shape(view) == ["u:q", "a:?c", "t:xc", "u:go on"]
        assert view.messages[2].text == (
            f"This call was not executed: the reply that made it ended with {stop!r}."
        )

    # B30
    def test_a_provider_run_call_is_neither_answered_nor_repaired(self) -> None:
        path = chained(user("q"), said(call("s", "search", provider=True), "found it"))

        view = model_view(path)

        assert shape(view) == ["u:q", "a:?s,found it"]
        assert view.repairs == ()

    # B30
    def test_a_result_beside_its_provider_run_call_stays_where_it_is(self) -> None:
        inner = ToolResultBlock("s", (TextBlock("page"),))
        path = chained(user("q"), said(call("s", provider=True), inner, "so"))

        view = model_view(path)

        assert shape(view) == ["u:q", "a:?s,=s,so"]
        assert view.messages[1] is path[1].message  # type: ignore[attr-defined]


class TestBlank:
    # B45 case 20
    @pytest.mark.parametrize("text", ["", "\n\n", " \t", "\u2028"])
    def test_an_interrupted_answer_of_white_space_is_left_out(self, text: str) -> None:
        path = chained(user("q"), said(text, stop="aborted"), user("again"))

        view = model_view(path)

        assert shape(view) == ["u:q", "u:again"]
        assert [(r.kind, r.entry_id) for r in view.repairs] == [("blank", "e1")]

    # B45 case 21
    @pytest.mark.parametrize("null", [True, False])
    def test_a_message_without_content_is_left_out(self, null: bool) -> None:
        empty = MessageEntry(message=Message("assistant", (), Reply(), null_content=null))

        view = model_view(chained(user("q"), empty, user("again")))

        assert shape(view) == ["u:q", "u:again"]
        assert kinds(view) == ["blank"]

    # B45 case 21
    def test_content_none_next_to_calls_becomes_no_text_block(self) -> None:
        message = Message("assistant", (ToolCallBlock("c", "look"),), None, null_content=True)

        view = model_view(chained(user("q"), MessageEntry(message=message), result("c")))

        assert view.messages[1] == message

    # B45
    def test_consecutive_user_messages_stay_separate(self) -> None:
        assert shape(model_view(chained(user("a"), user("b")))) == ["u:a", "u:b"]

    # B37
    def test_an_opaque_block_is_never_sent(self) -> None:
        path = chained(user("q"), said(OpaqueBlock('{"type":"hologram"}'), "see"))

        view = model_view(path)

        assert shape(view) == ["u:q", "a:see"]
        assert kinds(view) == ["opaque_block"]


class TestThinking:
    signed = ThinkingBlock("hm", signature="sig==")
    redacted = ThinkingBlock("", data="0xff")

    # B46
    @pytest.mark.parametrize("block", [signed, redacted])
    def test_signed_thinking_goes_back_unchanged_to_its_model(self, block: Block) -> None:
        path = chained(user("q"), said(block, "a", model="m"))

        view = model_view(path, model="m")

        assert view.messages[1] is path[1].message  # type: ignore[attr-defined]
        assert view.repairs == ()

    # B46
    @pytest.mark.parametrize("model", ["other", None])
    def test_signed_thinking_goes_to_no_other_model(self, model: str | None) -> None:
        path = chained(user("q"), said(self.signed, "a", model="m"))

        view = model_view(path, model=model)

        assert shape(view) == ["u:q", "a:a"]
        assert kinds(view) == ["foreign_thinking"]

    # B46
    def test_unsigned_thinking_is_never_sent(self) -> None:
        path = chained(user("q"), said(ThinkingBlock("hm"), "a", model="m"))

        view = model_view(path, model="m")

        assert shape(view) == ["u:q", "a:a"]
        assert kinds(view) == ["unsigned_thinking"]

    # B46 B45
    def test_thinking_is_never_alone_in_a_message(self) -> None:
        path = chained(user("q"), said(self.signed, "\n", model="m", stop="aborted"), user("r"))

        assert shape(model_view(path, model="m")) == ["u:q", "u:r"]
