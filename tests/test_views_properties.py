from __future__ import annotations

from entry_words import (
    any_path,
    called,
    chained,
    result,
    said,
    user,
)
from hypothesis import given
from hypothesis import strategies as st

from nbdurable.blocks import (
    ToolResultBlock,
)
from nbdurable.entries import Entry, MessageEntry
from nbdurable.views import (
    View,
    model_view,
    visible_entries,
)


def assert_valid(view: View, model: str | None) -> None:
    """Raise unless a strict provider would take the messages."""
    assert len(view.messages) == len(view.entry_ids)
    waiting: list[str] = []
    for message in view.messages:
        assert message.blocks
        assert all(block.text.strip() for block in message.blocks if block.type == "text")
        assert not any(block.type == "opaque" for block in message.blocks)
        if message.role == "tool":
            (answer,) = message.blocks
            assert isinstance(answer, ToolResultBlock)
            assert answer.call_id == waiting.pop(0)
            continue
        assert waiting == []
        assert any(block.type != "thinking" for block in message.blocks)
        for block in message.blocks:
            if block.type == "thinking":
                assert message.reply is not None and message.reply.model == model
                assert block.signature
        calls = message.tool_calls
        assert all(block.complete for block in calls)
        waiting = [block.id for block in calls if not block.provider_run]
        assert len(set(waiting)) == len(waiting)
    assert waiting == []


# B44 B45 B46
@given(any_path, st.sampled_from(["m", None]))
def test_every_path_gives_a_valid_view(path: list[Entry], model: str | None) -> None:
    assert_valid(model_view(path, model=model), model)


# B44
@given(any_path)
def test_a_view_stored_anew_gives_the_same_view_without_repairs(path: list[Entry]) -> None:
    first = model_view(path, model="m")

    again = model_view(
        chained(*(MessageEntry(message=message) for message in first.messages)), model="m"
    )

    assert (again.messages, again.repairs) == (first.messages, ())


# B44
@given(any_path)
def test_a_view_changes_no_entry_and_is_the_same_twice(path: list[Entry]) -> None:
    before = [repr(entry) for entry in path]

    first, second = model_view(path), model_view(path)

    assert first == second
    assert [repr(entry) for entry in path] == before


# B50
@given(any_path, st.integers(0, 14))
def test_what_a_compaction_hid_never_comes_back(path: list[Entry], end: int) -> None:
    visible = {entry.id for entry in visible_entries(path[:end])}
    hidden = {entry.id for entry in path[:end]} - visible

    later = {entry.id for entry in visible_entries(path)}

    assert not later & hidden


# case 6
def test_a_path_of_five_thousand_entries_is_sent_whole() -> None:
    path = chained(*(user("q") if i % 2 == 0 else said("a") for i in range(5_000)))

    view = model_view(path)

    assert len(view.messages) == 5_000
    assert view.repairs == ()


# B44
def test_unchanged_messages_are_sent_as_they_are_stored() -> None:
    path = chained(user("q"), called("c"), result("c"), said("a"))

    view = model_view(path)

    assert all(
        sent is entry.message  # type: ignore[attr-defined]
        for sent, entry in zip(view.messages, path, strict=True)
    )
