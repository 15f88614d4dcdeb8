"""Compaction in action: ask for the summary, append it, change nothing else.

Owns the run of a summary. `compaction` plans it, `views` reads it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from nbdurable.compaction import Plan, estimate_tokens, plan_compaction, summary_messages
from nbdurable.entries import CompactionEntry, Entry
from nbdurable.errors import RunError
from nbdurable.loaded import Leaf, Loaded
from nbdurable.loop import Loop, Stopped
from nbdurable.modelcall import ModelCall
from nbdurable.stored import Outcome
from nbdurable.threads import in_thread, in_worker
from nbdurable.views import visible_entries

SUMMARY_SYSTEM = "You summarise conversations. You never answer them and never call tools."

# Parameters that shape answers, where a summary is prose without tools.
_ANSWERS_ONLY = frozenset({"parallel_tool_calls", "response_format", "tool_choice"})


def plan_at(image: Loaded, leaf_id: str | None, keep_turns: int) -> Plan | None:
    """Return the compaction of a path, or None when there is nothing to summarise."""
    return plan_compaction(image.path(leaf_id), keep_turns)


class CompactionLoop(Loop):
    """A run whose one answer becomes a compaction entry; a failed one leaves the tree as it was."""

    plan: Plan
    prompt: str | None = None
    entry: Entry | None = None

    async def _store_input(self) -> None:
        job = self.job
        await in_worker(partial(job.image.save_context, job.context))
        record = replace(job.record, start_leaf_id=job.leaf.id)
        await in_worker(partial(job.image.store.start_run, record))
        self.emit("agent_start")

    async def _steps(self) -> Outcome:
        self.step = 1
        draft = await summarise(self, self.plan, self.prompt)
        self.entry = await append_summary(self, draft, ends=True)
        return "done"


async def summarise(loop: Loop, plan: Plan, prompt: str | None) -> CompactionEntry:
    """Ask the model of `loop` for the summary of a plan.

    Raises
    ------
    Stopped
        The call failed or was cancelled; nothing was stored.
    RunError
        The summary is empty (B51).
    """
    job = loop.job
    params = {n: value for n, value in job.settings.params.items() if n not in _ANSWERS_ONLY}
    plain = replace(job.settings, system=SUMMARY_SYSTEM, tools=(), params=params)
    request = plain.request(summary_messages(plan, prompt))
    held = loop.hold_budget(request)
    call = ModelCall(loop, request, is_answer=False)
    failure = await call.run()
    loop.settle_budget(held, call.cost_usd(failure))
    if failure is not None:
        raise Stopped(call.outcome, failure)
    message = call.message()
    loop.count(message)
    summary = message.text.strip()
    if not summary:
        raise RunError(
            f"model {job.model.name!r} gave an empty summary; nothing was changed, compact again"
        )
    reply = message.reply
    return CompactionEntry(
        summary=summary,
        first_kept_id=plan.first_kept_id,
        tokens_before=sum(estimate_tokens(entry) for entry in plan.summarise),
        model=job.model.name,
        usage=reply.usage if reply else None,
        cost_usd=reply.cost_usd if reply else None,
    )


async def append_summary(loop: Loop, draft: CompactionEntry, *, ends: bool) -> Entry:
    """Append the entry where the plan was made; refuse when the leaf has moved since (B51)."""
    job = loop.job
    planned = job.run.leaf_id
    if job.leaf.id != planned and not _only_unread_between(job.image, planned, job.leaf):
        raise RunError("the leaf moved while the summary was made; nothing was written, try again")
    entry = await loop.store(draft, "done" if ends else None)
    if ends:
        loop.emit("message_end", entries=(entry,), leaf_id=entry.id)
    return entry


def _only_unread_between(image: Loaded, planned: str | None, leaf: Leaf) -> bool:
    """Whether the leaf went on from `planned` by entries that no model reads."""
    path = image.path(leaf.id)
    ids = [entry.id for entry in path]
    if planned not in ids:
        return False
    return not visible_entries(path[ids.index(planned) + 1 :])


def compact_before(keep_turns: int, above_tokens: int) -> Callable[[Loop], Awaitable[None]]:
    """Return the preparation of a run: a compaction, when its request would exceed the limit."""

    async def prepare(loop: Loop) -> None:
        job = loop.job
        path = await in_worker(partial(job.image.path, job.leaf.id))
        messages = job.settings.view([*path, *job.input], job.image.views).messages
        if job.model.count_tokens(job.settings.request(messages)) <= above_tokens:
            return
        plan = plan_compaction(path, keep_turns)
        if plan is None:
            return
        job.record = replace(job.record, start_leaf_id=job.leaf.id)
        entry = await append_summary(loop, await summarise(loop, plan, None), ends=False)
        if job.on_compacted is not None:
            # in a thread, since a publisher may call verbs that wait for the loop (B53)
            await in_thread(partial(job.on_compacted, entry))

    return prepare
