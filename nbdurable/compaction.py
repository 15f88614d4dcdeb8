"""Compaction, planned: what a summary will replace, and what the summariser reads.

Owns turns and the place of the cut. Does not call a model and writes nothing. The one idea: the
plan is made over what the model reads now, so what an earlier summary hid is out of reach (B50),
and the cut moves back until no call is parted from its result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from nbdurable.blocks import Block, Message, TextBlock, ToolCallBlock, text_of
from nbdurable.entries import CompactionEntry, Entry, MessageEntry
from nbdurable.pairing import pair
from nbdurable.views import ends_in_reply, model_view, visible_entries

SUMMARY_PROMPT = (
    "Summarise the conversation above for a reader who has to go on with it and cannot see it. "
    "Keep goals, decisions, facts, names, numbers, results of tools and open questions. "
    "Do not answer or continue the conversation. Give the summary only."
)
CHARS_PER_TOKEN = 4
MEDIA_TOKENS = 1_000  # of an image or a file, whatever its size


@dataclass(frozen=True, slots=True)
class Turn:
    """A non-meta user message and everything up to the next one.

    Meta entries directly before the user message belong to it (B49). What precedes the first user
    message is a turn too.
    """

    entries: tuple[Entry, ...]

    @property
    def messages(self) -> tuple[MessageEntry, ...]:
        """The messages among the entries."""
        return tuple(entry for entry in self.entries if isinstance(entry, MessageEntry))

    @property
    def has_answer(self) -> bool:
        """Whether any assistant message is in it, finished or not."""
        return any(entry.role == "assistant" for entry in self.messages)

    @property
    def is_answered(self) -> bool:
        """Whether it ends in a finished reply, meta entries after it aside."""
        return ends_in_reply(self.entries[: _without_meta_tail(self.entries)])


@dataclass(frozen=True, slots=True)
class Plan:
    """A compaction to be made.

    ``summarise`` holds the entries that the summary will stand for, an earlier summary first;
    ``first_kept_id`` is None when nothing is kept.
    """

    first_kept_id: str | None
    summarise: tuple[Entry, ...]


# -- turns -----------------------------------------------------------------------------------


def turns(path: Sequence[Entry]) -> list[Turn]:
    """Return the turns of a path, oldest first; together they hold every entry of it."""
    ends = [*_turn_starts(path), len(path)]
    return [Turn(tuple(path[start:end])) for start, end in pairwise(ends)]


def _turn_starts(path: Sequence[Entry]) -> list[int]:
    starts = {0} if path else set()
    for i, entry in enumerate(path):
        if isinstance(entry, MessageEntry) and entry.role == "user" and not entry.meta:
            start = i
            while start > 0 and _is_meta(path[start - 1]):
                start -= 1
            starts.add(start)
    return sorted(starts)


def _is_meta(entry: Entry) -> bool:
    return isinstance(entry, MessageEntry) and entry.meta


def _without_meta_tail(entries: Sequence[Entry]) -> int:
    """Return where the meta entries at the end begin: they wait for the next user message."""
    end = len(entries)
    while end > 0 and _is_meta(entries[end - 1]):
        end -= 1
    return end


# -- the plan --------------------------------------------------------------------------------


def estimate_tokens(entry: Entry) -> int:
    """Return the rough size of an entry in tokens, at four characters each."""
    if isinstance(entry, CompactionEntry):
        return -(-len(entry.summary) // CHARS_PER_TOKEN)
    if not isinstance(entry, MessageEntry):
        return 0
    return sum(_block_tokens(block) for block in entry.blocks)


def _block_tokens(block: Block) -> int:
    match block.type:
        case "text" | "thinking":
            return -(-len(block.text) // CHARS_PER_TOKEN)
        case "tool_call":
            return -(-len(block.name + block.raw) // CHARS_PER_TOKEN)
        case "tool_result":
            return sum(_block_tokens(part) for part in block.content)
        case "image" | "file":
            return MEDIA_TOKENS
    return 0


def plan_compaction(
    path: Sequence[Entry],
    keep_turns: int = 0,
    *,
    max_keep_tokens: int | None = None,
    estimate: Callable[[Entry], int] = estimate_tokens,
) -> Plan | None:
    """Return what a compaction of the path would replace, or None when there is nothing.

    Parameters
    ----------
    path : sequence of Entry
        Oldest first; ephemeral messages among it are passed over.
    keep_turns : int
        Turns at the end that stay as they are. User turns at the end that have no finished reply
        stay in any case.
    max_keep_tokens : int, optional
        Keep fewer turns, or only the end of the last one, where the kept part would be larger.
    estimate : callable
        Size of an entry in tokens.

    Raises
    ------
    ValueError
        `keep_turns` is negative.
    """
    if keep_turns < 0:
        raise ValueError(f"keep_turns is {keep_turns}; give 0 or more")
    visible = visible_entries(path)
    earlier = [entry for entry in visible if isinstance(entry, CompactionEntry)]
    messages = [entry for entry in visible if isinstance(entry, MessageEntry)]
    messages = [entry for entry in messages if not entry.ephemeral]
    cuts = _Cuts(messages)
    cut = cuts.before_turns(keep_turns)
    if max_keep_tokens is not None:
        cut = cuts.within([estimate(entry) for entry in messages], max_keep_tokens, cut)
    if not model_view(messages[:cut]).messages:
        return None
    return Plan(
        first_kept_id=messages[cut].id if cut < len(messages) else None,
        summarise=(*earlier, *messages[:cut]),
    )


class _Cuts:
    """Where a sequence of messages may be cut."""

    def __init__(self, messages: Sequence[MessageEntry]) -> None:
        self._messages = messages
        self._turns = turns(messages)
        self._starts = _turn_starts(messages)
        self._last = self._last_cut()
        self._callers = self._first_callers()

    def _last_cut(self) -> int:
        """Return where that begins which waits for a reply or for the next user message."""
        if not self._turns or self._turns[-1].is_answered:
            return _without_meta_tail(self._messages)
        first = len(self._turns) - 1
        # one input may be several user messages in a row; they wait together
        while first > 0 and not self._turns[first - 1].has_answer:
            first -= 1
        return self._starts[first]

    def _first_callers(self) -> list[int]:
        """Return, for each place, the first call that is answered at or after it."""
        callers = list(range(len(self._messages) + 1))
        for slots in pair(self._messages).slots.values():
            for slot in slots.values():
                if slot.answer is not None:
                    callers[slot.answer_at] = min(callers[slot.answer_at], slot.at)
        return list(accumulate(reversed(callers), min))[::-1]

    def _whole(self, cut: int) -> int:
        """Move a cut back until no call before it is answered after it (case 18)."""
        while self._callers[cut] < cut:
            cut = self._callers[cut]
        return cut

    def before_turns(self, keep_turns: int) -> int:
        """Return the cut that keeps a number of turns and all that wait for a reply."""
        ends = [*self._starts, len(self._messages)]
        cut = ends[max(len(ends) - 1 - keep_turns, 0)]
        return self._whole(min(cut, self._last))

    def within(self, sizes: Sequence[int], limit: int, cut: int) -> int:
        """Return the earliest cut from `cut` on whose kept part has at most `limit` tokens.

        Cuts are before turns, and in the last one before its assistant messages; if none fits,
        the last of them.
        """
        left = list(accumulate(reversed(sizes), initial=0))[::-1]
        if left[cut] <= limit:
            return cut
        inner = self._starts[-1] if self._starts else 0
        answers = [
            i for i, entry in enumerate(self._messages) if i > inner and entry.role == "assistant"
        ]
        for place in (self._whole(place) for place in [*self._starts, *answers]):
            if cut < place <= self._last:
                cut = place
                if left[cut] <= limit:
                    break
        return cut


# -- the summariser's input ------------------------------------------------------------------


def summary_messages(
    plan: Plan,
    prompt: str | None = None,
    *,
    effects: frozenset[str] = frozenset(),
) -> tuple[Message, ...]:
    """Return what to send to the summariser: what the plan replaces, then the prompt.

    Tool calls and results are written out as text, since a request without tools that holds them
    is refused by some providers (B51). The last message is the user's.
    """
    view = model_view(plan.summarise, effects=effects)
    asked = Message("user", (TextBlock(SUMMARY_PROMPT if prompt is None else prompt),))
    return (*(_without_tools(message) for message in view.messages), asked)


def _without_tools(message: Message) -> Message:
    if not message.tool_calls and not message.tool_results:
        return message
    blocks = tuple(part for block in message.blocks for part in _as_text(block))
    role = "user" if message.role == "tool" else message.role
    return Message(role, blocks, message.reply)


def _as_text(block: Block) -> tuple[Block, ...]:
    if isinstance(block, ToolCallBlock):
        return (TextBlock(f"[called tool {block.name} with {block.raw or '{}'}]"),)
    if block.type != "tool_result":
        return (block,)
    what = "error" if block.is_error else "result"
    named = f" of tool {block.name}" if block.name else ""
    media = tuple(part for part in block.content if part.type != "text")
    return (TextBlock(f"[{what}{named}: {text_of(block.content)}]"), *media)
