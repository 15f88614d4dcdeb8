"""A recorded run told again: the events of B14 from stored messages, nothing called (B55).

The one idea: to its readers a replayed run is a run that was over before they looked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from nbdurable.blocks import Message, ThinkingBlock, ToolCallBlock
from nbdurable.entries import CompactionEntry, Entry, MessageEntry
from nbdurable.events import Event
from nbdurable.loaded import Loaded
from nbdurable.replay.record import Recorded
from nbdurable.run import Run
from nbdurable.schemas import Schema
from nbdurable.stored import RunEnd, RunRecord
from nbdurable.wire import usage_from_dict


def run_entries(image: Loaded, record: RunRecord, leaf_id: str | None) -> list[Entry]:
    """Return the entries of a run on the way up from its last one, input first.

    A summary that was made before it is not among them, nor is what others put in between.
    """
    wanted, seen = {*record.input_ids}, set[str]()
    found: list[Entry] = []
    at = leaf_id
    while at is not None and at != record.start_leaf_id and at not in seen:
        seen.add(at)
        stored = image.tree.get(at)
        if stored is None:
            break
        is_summary = stored.kind == "compaction" and record.kind != "compact"
        if (stored.run_id == record.id or at in wanted) and not is_summary:
            found.append(image.entry(at))
        at = stored.parent_id
    return found[::-1]


def model_of(record: RunRecord, entries: Sequence[Entry]) -> str | None:
    """Return the model that answered, which a replay's own may have done for the recorded one."""
    for entry in reversed(entries):
        if isinstance(entry, MessageEntry) and entry.message.reply is not None:
            return entry.message.reply.model or record.model
        if isinstance(entry, CompactionEntry):
            return entry.model or record.model
    return record.model


def replayed_run(
    image: Loaded, recorded: Recorded, *, moves: bool, schema: Schema | None = None
) -> Run:
    """Return a finished run as it was, its events flagged ``replayed``.

    `schema` is that of the call, whose class makes the run's data.
    """
    record, end = recorded.record, recorded.end
    leaf_id = end.leaf_id if end else None
    entries = run_entries(image, record, leaf_id)
    model = model_of(record, entries)
    run = Run(
        record.id,
        model=model,
        moves=moves,
        leaf_id=record.start_leaf_id,
        schema=schema,
    )
    run._input_ids = record.input_ids
    _Telling(run, record).all(entries, end)
    run._finish(end.outcome if end else "interrupted", None, end.seconds if end else None)
    return run


class _Telling:
    """The events of one run, in the order of the loop."""

    def __init__(self, run: Run, record: RunRecord) -> None:
        self._run = run
        self._record = record
        self._step = 0
        self._is_in_step = False
        self._leaf_id = record.start_leaf_id
        self._calls: dict[str, ToolCallBlock] = {}

    def all(self, entries: Sequence[Entry], end: RunEnd | None) -> None:
        """Tell the whole run."""
        given = {*self._record.input_ids}
        input = tuple(entry for entry in entries if entry.id in given)
        self._leaf_id = entries[0].parent_id if entries else self._leaf_id
        self._receipt("agent_start", input)
        for entry in entries[len(input) :]:
            self._entry(entry)
        self._end_step()
        usage = usage_from_dict(json.loads(end.usage_json)) if end else None
        self._emit(
            "agent_end",
            outcome=end.outcome if end else None,
            usage=usage,
            cost_usd=end.cost_usd if end else None,
            seconds=end.seconds if end else None,
        )

    def _emit(self, type: str, **values: object) -> None:
        self._run._emit(
            Event(
                type=type,  # type: ignore[arg-type]
                run_id=self._record.id,
                leaf_id=self._leaf_id,
                step=self._step,
                replayed=True,
                **values,  # type: ignore[arg-type]
            )
        )

    def _receipt(self, type: str, entries: tuple[Entry, ...], **values: object) -> None:
        self._leaf_id = entries[-1].id if entries else self._leaf_id
        self._emit(type, entries=entries, **values)

    def _end_step(self) -> None:
        if self._is_in_step:
            self._emit("step_end")
        self._is_in_step = False

    def _entry(self, entry: Entry) -> None:
        message = entry.message if isinstance(entry, MessageEntry) else None
        if message is not None and message.role == "assistant":
            self._answer(entry, message)
        elif message is not None and message.role == "tool":
            self._results(entry, message)
        else:  # what a hook added, or a summary
            self._end_step()
            self._receipt("message_end", (entry,), message=message)

    def _answer(self, entry: Entry, message: Message) -> None:
        self._end_step()
        self._step += 1
        self._is_in_step = True
        self._emit("step_start")
        self._emit("message_start")
        for block in message.blocks:
            if isinstance(block, ThinkingBlock) and block.text:
                self._emit("message_update", thinking=block.text)
            elif block.type == "text" and block.text:
                self._emit("message_update", text=block.text)
        self._calls = {call.id: call for call in message.tool_calls}
        reply = message.reply
        self._receipt(
            "message_end",
            (entry,),
            message=message,
            usage=reply.usage if reply else None,
            cost_usd=reply.cost_usd if reply else None,
            seconds=reply.seconds if reply else None,
        )

    def _results(self, entry: Entry, message: Message) -> None:
        for result in message.tool_results:
            call = self._calls.get(result.call_id)
            told = {"call_id": result.call_id, "name": call.name if call else result.name}
            self._emit("tool_start", arguments=call.raw if call else None, **told)
            self._leaf_id = entry.id
            self._emit("tool_end", result=result, **told)
        self._receipt("message_end", (entry,), message=message)
