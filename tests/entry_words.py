"""Short words for entries, and random paths of them."""

from __future__ import annotations

from itertools import count

from hypothesis import strategies as st

from nbdurable.blocks import (
    Block,
    Message,
    OpaqueBlock,
    Reply,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from nbdurable.entries import CompactionEntry, CustomEntry, Entry, MessageEntry
from nbdurable.views import (
    View,
)


def user(text: str, **header: object) -> MessageEntry:
    return MessageEntry(message=Message("user", (TextBlock(text),)), **header)  # type: ignore[arg-type]


def said(*blocks: Block | str, stop: StopReason | None = "stop", model: str = "m") -> MessageEntry:
    reply = None if stop is None else Reply(model=model, stop_reason=stop)
    parts = tuple(TextBlock(block) if isinstance(block, str) else block for block in blocks)
    return MessageEntry(message=Message("assistant", parts, reply))


def called(*calls: ToolCallBlock | str) -> MessageEntry:
    return said(*(call(c) if isinstance(c, str) else c for c in calls), stop="tool_calls")


def call(id: str, name: str = "look", complete: bool = True, provider: bool = False) -> Block:
    return ToolCallBlock(id, name, "{}", complete, provider)


def result(id: str, text: str = "found") -> MessageEntry:
    block = ToolResultBlock(id, (TextBlock(text),))
    return MessageEntry(message=Message("tool", (block,)))


def note() -> CustomEntry:
    return CustomEntry(stored_kind="note", fields_json='{"a":1}')


def compaction(summary: str, first_kept_id: str | None) -> CompactionEntry:
    return CompactionEntry(summary=summary, first_kept_id=first_kept_id)


def chained(*entries: Entry) -> list[Entry]:
    """Give each entry without an id the next of e0, e1, ... and the one before as parent."""
    numbers, path = count(), []
    for entry in entries:
        number = next(numbers)
        parent_id = path[-1].id if path else None
        given = {**vars(entry), "id": entry.id or f"e{number}", "parent_id": parent_id}
        path.append(type(entry)(**{**given, "seq": number}))
    return path


def shape(view: View) -> list[str]:
    """One word per message: the role's letter, then text, or calls and results by id."""
    words = []
    for message in view.messages:
        parts = []
        for block in message.blocks:
            match block.type:
                case "text":
                    parts.append(block.text)
                case "tool_call":
                    parts.append(f"?{block.id}")
                case "tool_result":
                    parts.append(("x" if block.is_error else "=") + block.call_id)
                case _:
                    parts.append(block.type)
        words.append(message.role[0] + ":" + ",".join(parts))
    return words


def kinds(view: View) -> list[str]:
    return [repair.kind for repair in view.repairs]


# -- random paths ----------------------------------------------------------------------------

call_ids = st.sampled_from(["c0", "c1", "c2"])
texts = st.sampled_from(["word", "", " \n"])
blocks_said = st.lists(
    st.one_of(
        st.builds(TextBlock, texts),
        st.builds(ThinkingBlock, texts, st.sampled_from([None, "sig"])),
        st.builds(OpaqueBlock, st.just("{}")),
        st.builds(ToolCallBlock, call_ids, st.just("look"), st.just("{}"), st.booleans()),
        st.builds(ToolCallBlock, st.just("p"), st.just("web"), provider_run=st.just(True)),
    ),
    max_size=4,
)
replies = st.one_of(
    st.none(),
    st.builds(
        Reply,
        model=st.sampled_from(["m", "n", None]),
        stop_reason=st.sampled_from(["stop", "length", "tool_calls", "error", "aborted"]),
    ),
)
results = st.lists(
    st.builds(
        ToolResultBlock,
        call_ids,
        st.lists(st.builds(TextBlock, texts), max_size=2).map(tuple),
        st.booleans(),
    ),
    min_size=1,
    max_size=2,
)
user_blocks = st.lists(st.builds(TextBlock, texts), max_size=2)


def message(role: Role, blocks: st.SearchStrategy[list[Block]]) -> st.SearchStrategy[MessageEntry]:
    reply = replies if role == "assistant" else st.none()
    held = st.builds(Message, st.just(role), blocks.map(tuple), reply)
    return st.builds(MessageEntry, message=held, meta=st.booleans())


def any_entry() -> st.SearchStrategy[Entry]:
    kept = st.one_of(st.none(), st.integers(0, 12).map("e{}".format))
    return st.one_of(
        message("user", user_blocks),
        message("assistant", blocks_said),
        message("tool", results),
        message("user", st.one_of(results, user_blocks)),
        st.builds(note),
        st.builds(compaction, st.just("sum"), kept),
    )


any_path = st.lists(any_entry(), max_size=14).map(lambda entries: chained(*entries))
