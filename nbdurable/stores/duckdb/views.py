"""The documented views in ``main``, for any DuckDB client without this package.

They name tables as ``nbd.entries``, without a catalog, which DuckDB resolves in the view's own
file: they work under any alias but ``nbd`` itself (attach a file called ``nbd.duckdb`` under
another alias). Times are TIMESTAMPTZ. Order is by ``seq``, which every view of entries has.
"""

from __future__ import annotations

_HEADER = "e.seq, e.session_id, e.n, e.id, e.parent_id, e.depth, e.run_id, e.role"
_TOKENS = "input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens"
_SUM_OF_TOKENS = " + ".join(f"coalesce({name}, 0)" for name in _TOKENS.split(", "))
# A payload of a newer version may have any shape: what is no JSON, or has no blocks, has no text.
_PAYLOAD = "try_cast(e.payload as json)"
_BLOCKS = f"from_json(coalesce({_PAYLOAD}->'$.blocks', '[]'), '[\"json\"]')"
_TEXT_OF = (
    "array_to_string(list_transform(list_filter({blocks}, lambda b: b->>'type' = 'text'), "
    "lambda b: b->>'text'), chr(10))"
)
_CONTENT = "from_json(coalesce(block->'$.content', '[]'), '[\"json\"]')"


def _blocks_of(kind: str) -> str:
    return (
        f"(select e.*, unnest({_BLOCKS}) as block from nbd.entries e "
        f"where e.kind = 'message') e where block->>'type' = '{kind}'"
    )


VIEWS: dict[str, str] = {
    "sessions": """
        select s.id, s.parent_session_id, s.parent_entry_id,
            make_timestamptz(s.created_at) as created_at,
            coalesce(u.title, '') as title, coalesce(u.entries, 0) as entries,
            coalesce(u.leaves, 0) as leaves, make_timestamptz(u.last_at) as last_at, u.cost_usd
        from nbd.sessions s left join (
            select session_id, count(*) as entries,
                count(*) - count(distinct parent_id) as leaves,
                arg_max(created_at, seq) as last_at,
                arg_min(preview, seq) filter (role = 'user' and not meta) as title,
                sum(cost_usd) as cost_usd
            from nbd.entries group by session_id) u on u.session_id = s.id
        order by s.counter
    """,
    "entries": f"""
        select {_HEADER}, e.kind, e.meta, e.model, e.stop_reason,
            {_TOKENS}, e.cost_usd, e.seconds, e.ttft_s, e.preview, e.moves_leaf, e.source_id,
            make_timestamptz(e.created_at) as created_at, e.payload
        from nbd.entries e order by e.seq
    """,
    "messages": f"""
        select {_HEADER}, e.meta, e.model, e.stop_reason, {_TOKENS},
            e.cost_usd, e.seconds, e.ttft_s, make_timestamptz(e.created_at) as created_at,
            {_TEXT_OF.format(blocks=_BLOCKS)} as text, {_PAYLOAD} as payload
        from nbd.entries e where e.kind = 'message' order by e.seq
    """,
    "runs": """
        select r.counter, r.session_id, r.id, r.kind, r.model, r.params_json, r.moves,
            r.start_leaf_id, r.input_ids, r.rerun_of, r.experiment_id, r.cell, r.origin, r.owner,
            make_timestamptz(r.created_at) as started_at, e.outcome, e.error, e.steps, e.leaf_id,
            e.seconds, e.usage_json, e.cost_usd, make_timestamptz(e.created_at) as ended_at,
            c.system, c.tools_json
        from nbd.runs r
        left join nbd.run_ends e on e.run_id = r.id
        left join nbd.contexts c on c.digest = r.context_digest
        order by r.counter
    """,
    "tool_calls": f"""
        select {_HEADER}, block->>'id' as call_id, block->>'name' as name,
            block->>'arguments' as arguments,
            coalesce(block->>'complete', 'true') = 'true' as complete,
            coalesce(block->>'provider_run', 'false') = 'true' as provider_run,
            make_timestamptz(e.created_at) as created_at
        from {_blocks_of("tool_call")} order by e.seq
    """,
    "tool_results": f"""
        select {_HEADER}, block->>'call_id' as call_id, block->>'name' as name,
            coalesce(block->>'is_error', 'false') = 'true' as is_error,
            {_TEXT_OF.format(blocks=_CONTENT)} as text,
            make_timestamptz(e.created_at) as created_at
        from {_blocks_of("tool_result")} order by e.seq
    """,
    "branches": """
        select e.seq, e.session_id, e.n, e.id as leaf_id, e.depth, e.role, e.model, e.preview,
            make_timestamptz(e.created_at) as created_at
        from nbd.entries e
        anti join nbd.entries c on c.parent_id = e.id and c.session_id = e.session_id
        order by e.seq
    """,
    "usage": f"""
        select session_id, model, count(*) as messages,
            {", ".join(f"coalesce(sum({name}), 0) as {name}" for name in _TOKENS.split(", "))},
            sum({_SUM_OF_TOKENS}) as total_tokens, sum(cost_usd) as cost_usd
        from nbd.entries where model is not null group by session_id, model
        order by session_id, model
    """,
    "annotations": """
        select a.counter, a.session_id, a.target_id, a.name, a."by" as author, a.value_json, a.note,
            make_timestamptz(a.created_at) as created_at
        from (select *, row_number() over (
                partition by session_id, target_id, name, "by" order by counter desc) as newest
            from nbd.annotations) a
        where a.newest = 1 and a.value_json <> 'null' order by a.counter
    """,
}
