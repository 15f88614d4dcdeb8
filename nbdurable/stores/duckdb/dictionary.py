"""The data dictionary: what each column of each view means, with its type as the schema has it.

The one idea: names and types come from the views themselves, so that only meanings can be missing,
and a test sees that none is.
"""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from nbdurable.stores.duckdb import schema
from nbdurable.stores.duckdb.schema import ALIAS
from nbdurable.stores.duckdb.views import VIEWS


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a view."""

    view: str
    name: str
    type: str
    meaning: str


ABOUT: dict[str, str] = {
    "sessions": "One row per session, in the order they were made.",
    "entries": "One row per entry of any kind.",
    "messages": "One row per entry that is a message.",
    "runs": "One row per run, from its input to its last reply, in the order they started.",
    "tool_calls": "One row per tool call in a message.",
    "tool_results": "One row per tool result in a message.",
    "branches": "One row per branch: the entry at its end, which has no children.",
    "usage": "Answers and summaries by session, model and day; what a fork copied is left out.",
    "annotations": "Labels, ratings and preferences: the latest per target, name and author.",
}

_COMMON: dict[str, str] = {
    "seq": "Append order in the whole store; the only sort key.",
    "session_id": "The session.",
    "n": "Ordinal in the session, from 1, shown as #12.",
    "id": "Id of the entry.",
    "parent_id": "The entry it was appended under; missing for a root.",
    "depth": "Entries on the path from the root to it, itself included.",
    "run_id": "The run that stored it; copies of a fork keep that of their source.",
    "role": "user, assistant or tool; missing where the entry is no message.",
    "kind": "message, compaction, or the kind of a custom entry.",
    "meta": "Whether the model reads it and the transcript hides it.",
    "model": "The model that was asked.",
    "stop_reason": "Why the answer ended: stop, length, tool_calls, error or aborted.",
    "input_tokens": "Input tokens that came from no cache.",
    "output_tokens": "Output tokens without reasoning.",
    "cache_read_tokens": "Input tokens read from the provider's cache.",
    "cache_write_tokens": "Input tokens written to the provider's cache.",
    "reasoning_tokens": "Output tokens spent on reasoning.",
    "cost_usd": "Cost in USD; missing where no price is known.",
    "seconds": "From asking to the end of the answer, in seconds.",
    "ttft_s": "From asking to the first text, in seconds.",
    "preview": "One line of what it says, at most 120 code points.",
    "moves_leaf": "Whether a session resumes there when nothing came later.",
    "source_id": "Id in the system it was imported from.",
    "created_at": "When it was made.",
    "text": "What it says: text blocks, results, a summary, text fields, by line.",
    "error": "What went wrong, where it ended error or aborted.",
    "payload": "Everything it holds, as JSON text.",
    "call_id": "The id that pairs call and result; it may repeat in other messages.",
    "name": "Name of the tool.",
}

_OWN: dict[str, dict[str, str]] = {
    "sessions": {
        "id": "Id of the session.",
        "parent_session_id": "The session it was forked from.",
        "parent_entry_id": "The entry of that session at which it was forked.",
        "created_at": "When it was made; for a fork, when it was forked.",
        "title": "First line of the first user message.",
        "entries": "How many entries it has.",
        "leaves": "How many branches it has.",
        "models": "The models that answered in it, by name, parted by commas.",
        "last_at": "When its newest entry was made.",
        "cost_usd": "Cost of its entries in USD, copied ones included.",
        "position_id": "The entry where it resumes; missing for the root.",
    },
    "messages": {"payload": "Everything it holds, as JSON; missing where it is none."},
    "runs": {
        "counter": "Order in which runs of the store started.",
        "id": "Id of the run.",
        "kind": "The verb: run, rerun, edit, compact, sample, grid, redrive.",
        "params": "Recorded parameters as JSON text.",
        "moves": "Whether it is a foreground run, which moves leaf and position.",
        "start_leaf_id": "The entry it started under; missing for the root.",
        "input_ids": "The stored entries of its input, in order.",
        "rerun_of": "Id of the entry whose answer was asked for again.",
        "experiment_id": "The experiment it belongs to.",
        "cell": "Its place in the experiment's plan.",
        "origin": "The notebook cell that asked.",
        "owner": "The process that runs it: host, process id, start.",
        "started_at": "When it started.",
        "outcome": "done, max_steps, error or aborted; missing while it runs, or if it was cut.",
        "error": "What went wrong.",
        "steps": "How many times the model was called.",
        "leaf_id": "Its last entry.",
        "seconds": "From start to end, in seconds.",
        "ended_at": "When it ended.",
        "input": "Preview of its first user message that is not meta.",
        "leaf_n": "Ordinal of its last entry.",
        "answer": "Preview of its last entry.",
        "system": "System text.",
        "tools": "Names, descriptions and schemas of its tools as JSON text.",
    },
    "tool_calls": {
        "id": "Id of the message that holds the call.",
        "arguments": "Arguments as the model wrote them.",
        "args_valid": "Whether the arguments are JSON.",
        "complete": "Whether the call came whole.",
        "provider_run": "Whether the provider ran the tool itself.",
    },
    "tool_results": {
        "id": "Id of the message that holds the result.",
        "is_error": "Whether the tool failed.",
        "text": "Text of the result.",
    },
    "branches": {"leaf_id": "Id of the entry at its end."},
    "usage": {
        "day": "Midnight UTC of the day the answers were made.",
        "messages": "How many answers and summaries.",
        "total_tokens": "All tokens together.",
        "unpriced": "Answers without a known cost, which cost_usd leaves out.",
        "cost_usd": "Cost in USD; missing where no price is known.",
    },
    "annotations": {
        "counter": "Order in which annotations of the store were made.",
        "target_id": "Id of the entry it is about.",
        "name": "label, prefer, or the name of a rating.",
        "author": "Who said so; missing where nobody was named.",
        "value_json": "The value as JSON text.",
        "note": "A remark.",
    },
}


def data_dictionary() -> list[Column]:
    """Return one row per column of each view, in the schema's order.

    A column without a meaning has an empty one, which the tests refuse.
    """
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"attach ':memory:' as {ALIAS}")
        schema.create(connection, "data dictionary")
        return [
            Column(view, name, kind, _OWN.get(view, {}).get(name) or _COMMON.get(name, ""))
            for view in VIEWS
            for name, kind, *_ in connection.execute(f"describe {ALIAS}.main.{view}").fetchall()
        ]
