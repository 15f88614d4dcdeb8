"""The documented views in ``main``, for any DuckDB client without this package.

They name tables as ``nbd.entries``, without a catalog, which DuckDB resolves in the view's own
file: they work under any alias but ``nbd`` itself (attach a file called ``nbd.duckdb`` under
another alias). Times are TIMESTAMPTZ. Rows come in stored order, which is the order of ``seq``;
a query that joins or sorts gives its own ``order by``. What each column means stands in
`dictionary`. The one idea: a column that no query names costs nothing, so what must be read out of
payloads (``text``, ``error``) may stand beside what need not.
"""

from __future__ import annotations

_HEADER = "e.seq, e.session_id, e.n, e.id, e.parent_id, e.depth, e.run_id, e.role"
_TOKENS = "input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens"
_TOKEN_NAMES = _TOKENS.split(", ")
_SUM_OF_TOKENS = " + ".join(f"coalesce(e.{name}, 0)" for name in _TOKEN_NAMES)
# A payload of a newer version may have any shape: what is no JSON, or has no blocks, has no text.
_PAYLOAD = "try_cast(e.payload as json)"
_BLOCKS = f"from_json(coalesce({_PAYLOAD}->'$.blocks', '[]'), '[\"json\"]')"
_TEXT_OF = (
    "array_to_string(list_transform(list_filter({blocks}, lambda b: b->>'type' = 'text'), "
    "lambda b: b->>'text'), chr(10))"
)
_CONTENT = "from_json(coalesce(block->'$.content', '[]'), '[\"json\"]')"

# What a message says as in `Message.text`: text blocks and results, joined by line ends. One parse
# into a fixed shape takes a third of the time of one look-up per block.
_SHAPE = """'{{"blocks": [{{"type": "varchar", "text": "varchar",
    "content": [{{"type": "varchar", "text": "varchar"}}]}}]}}'"""
_SPOKEN_IN = f"""coalesce(array_to_string(list_transform(
    from_json(try_cast({{payload}} as json), {_SHAPE}).blocks,
    lambda b: case b.type when 'text' then b.text when 'tool_result' then coalesce(array_to_string(
        list_transform(b.content, lambda c: case c.type when 'text' then c.text end), chr(10)), '')
    end), chr(10)), '')"""
_SPOKEN = _SPOKEN_IN.format(payload="e.payload")
_FIELD_TEXTS = f"""coalesce(array_to_string(list_transform(
    json_extract({_PAYLOAD}, '$.fields.*'),
    lambda v: case json_type(v) when 'VARCHAR' then v->>'$' end), chr(10)), '')"""
# Joined, as DuckDB takes twice the time for what stands within a case.
_TEXT = f"""{_SPOKEN_IN.format(payload="if(e.kind = 'message', e.payload, null)")} || case e.kind
    when 'message' then '' when 'compaction' then coalesce({_PAYLOAD}->>'$.summary', '')
    else {_FIELD_TEXTS} end"""
_ERROR = f"""case when e.stop_reason in ('error', 'aborted')
    then {_PAYLOAD}->>'$.reply.error' end"""

# Where each session resumes: null at the root.
POSITIONS = """select session_id, arg_max_null(entry_id, seq) as position_id from (
        select session_id, entry_id, seq from nbd.moves
        union all select session_id, id, seq from nbd.entries where moves_leaf)
    group by session_id"""

# The entries of a fork carry the run ids of their source: what they cost was paid there.
_PAID_HERE = "(r.session_id is null or r.session_id = e.session_id)"


def _blocks_of(kind: str) -> str:
    return (
        f"(select e.*, unnest({_BLOCKS}) as block from nbd.entries e "
        f"where e.kind = 'message') e where block->>'type' = '{kind}'"
    )


def _used(name: str) -> str:
    return f"try_cast(try_cast(e.usage_json as json)->>'$.{name}' as bigint) as {name}"


VIEWS: dict[str, str] = {
    "sessions": f"""
        select s.id, s.parent_session_id, s.parent_entry_id,
            make_timestamptz(s.created_at) as created_at,
            coalesce(u.title, '') as title, coalesce(u.entries, 0) as entries,
            coalesce(u.leaves, 0) as leaves, u.models,
            make_timestamptz(coalesce(u.last_at, s.created_at)) as last_at, u.cost_usd,
            p.position_id
        from nbd.sessions s left join (
            select session_id, count(*) as entries,
                count(*) - count(distinct parent_id) as leaves,
                arg_max(created_at, seq) as last_at,
                arg_min(preview, seq) filter (role = 'user' and not meta) as title,
                sum(cost_usd) as cost_usd,
                nullif(array_to_string(list_sort(list(distinct model)), ', '), '') as models
            from nbd.entries group by session_id) u on u.session_id = s.id
        left join ({POSITIONS}) p on p.session_id = s.id
        order by s.counter
    """,
    "entries": f"""
        select {_HEADER}, e.kind, e.meta, e.model, e.stop_reason,
            {_TOKENS}, e.cost_usd, e.seconds, e.ttft_s, e.preview, e.moves_leaf, e.source_id,
            make_timestamptz(e.created_at) as created_at,
            {_TEXT} as text, {_ERROR} as error, e.payload
        from nbd.entries e
    """,
    "messages": f"""
        select {_HEADER}, e.meta, e.model, e.stop_reason, {_TOKENS},
            e.cost_usd, e.seconds, e.ttft_s, make_timestamptz(e.created_at) as created_at,
            {_SPOKEN} as text, {_ERROR} as error, {_PAYLOAD} as payload
        from nbd.entries e where e.kind = 'message'
    """,
    "runs": f"""
        select r.counter, r.session_id, r.id, r.kind, r.model, r.params_json as params, r.moves,
            r.start_leaf_id, r.input_ids, r.rerun_of, r.experiment_id, r.cell, r.origin, r.owner,
            make_timestamptz(r.created_at) as started_at, e.outcome, e.error, e.steps, e.leaf_id,
            e.seconds, {", ".join(map(_used, _TOKEN_NAMES))}, e.cost_usd,
            make_timestamptz(e.created_at) as ended_at,
            i.preview as input, a.n as leaf_n, a.preview as answer, c.system, c.tools_json as tools
        from nbd.runs r
        left join nbd.run_ends e on e.run_id = r.id
        left join nbd.contexts c on c.digest = r.context_digest
        left join (
            select run_id, session_id, arg_min(preview, seq) as preview from nbd.entries
            where role = 'user' and not meta group by run_id, session_id
        ) i on i.run_id = r.id and i.session_id = r.session_id
        left join nbd.entries a on a.id = try_cast(e.leaf_id as uuid)
        order by r.counter
    """,
    "tool_calls": f"""
        select {_HEADER}, block->>'id' as call_id, block->>'name' as name,
            block->>'arguments' as arguments,
            json_valid(block->>'arguments') as args_valid,
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
        select e.seq, e.session_id, e.n, e.id as leaf_id, e.depth, e.role, e.model, e.stop_reason,
            e.preview, make_timestamptz(e.created_at) as created_at
        from nbd.entries e
        anti join nbd.entries c on c.parent_id = e.id and c.session_id = e.session_id
        order by e.seq
    """,
    "usage": f"""
        select e.session_id, e.model,
            make_timestamptz(e.created_at - e.created_at % 86400000000) as day,
            count(*) as messages,
            {", ".join(f"coalesce(sum(e.{name}), 0)::bigint as {name}" for name in _TOKEN_NAMES)},
            coalesce(sum({_SUM_OF_TOKENS}), 0)::bigint as total_tokens,
            count(*) - count(e.cost_usd) as unpriced, sum(e.cost_usd) as cost_usd
        from nbd.entries e left join nbd.runs r on r.id = e.run_id
        where e.model is not null and {_PAID_HERE} 
        group by e.session_id, e.model, day order by e.session_id, e.model, day
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
