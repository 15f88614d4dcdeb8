"""The documented views in schema ``nbdurable``, and the functions they stand on.

They have the names, columns and rows of the views in a DuckDB store (`stores.duckdb.views`), so
that frames and most questions read alike. Functions with DuckDB's names are there for the same
reason: ``epoch_us``, ``make_timestamptz``, ``contains``. A NUL in a text comes as U+FDD0 here,
since PostgreSQL's text cannot hold it; the package turns it back. Rows of ``entries`` and
``messages`` come in no order, as sorting them in the view would keep an index from being used in
a join: a query gives its own ``order by seq``.
"""

from __future__ import annotations

_HEADER = "e.seq, e.session_id, e.n, e.id, e.parent_id, e.depth, e.run_id, e.role"
_TOKENS = "input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens"
_TOKEN_NAMES = _TOKENS.split(", ")
_SUM_OF_TOKENS = " + ".join(f"coalesce(e.{name}, 0)" for name in _TOKEN_NAMES)
_EACH = "json_array_elements(nbd.list_in({list})) with ordinality as {alias} ({value}, place)"


def _made_at(column: str) -> str:
    return f"nbdurable.make_timestamptz({column})"


def _entry(column: str) -> str:
    """Give a reference that nothing checks, kept as text, the type of ``id``, to join by it."""
    return f"nbd.uuid_or_null({column}) as {column.partition('.')[2]}"


FUNCTIONS: tuple[str, ...] = (
    # Exact to the microsecond: the product is a whole number that a real holds.
    """create function nbdurable.make_timestamptz(us bigint) returns timestamptz
    language sql immutable parallel safe
    as $$ select timestamptz '1970-01-01 00:00:00+00' + us * interval '1 microsecond' $$""",
    """create function nbdurable.epoch_us(at timestamptz) returns bigint
    language sql immutable parallel safe
    as $$ select (extract(epoch from at) * 1000000)::bigint $$""",
    """create function nbdurable.contains(held text, wanted text) returns boolean
    language sql immutable parallel safe
    as $$ select strpos(held, wanted) > 0 $$""",
    # A payload of a newer version may have any shape: what is no JSON is missing. As ``jsonb`` it
    # is only checked, since that forgets the order of keys.
    r"""create function nbd.json_or_null(payload text) returns json
    language plpgsql immutable strict as $$
    declare readable text := regexp_replace(
        payload, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufdd0', 'g');
    begin
        perform readable::jsonb;
        return readable::json;
    exception when data_exception or program_limit_exceeded or statement_too_complex then
        return null;
    end $$""",
    """create function nbd.is_json(given text) returns boolean
    language plpgsql immutable strict as $$
    begin
        perform given::json;
        return true;
    exception when data_exception or program_limit_exceeded or statement_too_complex then
        return false;
    end $$""",
    """create function nbd.uuid_or_null(id text) returns uuid
    language sql immutable parallel safe as $$
    select case when id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then id::uuid end $$""",
    """create function nbd.list_in(value json) returns json
    language sql immutable parallel safe as $$
    select case json_typeof(value) when 'array' then value else '[]'::json end $$""",
    """create function nbd.fields_in(value json) returns json
    language sql immutable parallel safe as $$
    select case json_typeof(value) when 'object' then value else '{}'::json end $$""",
    f"""create function nbd.texts_in(content json) returns text
    language sql immutable as $$
    select coalesce(string_agg(part->>'text', chr(10) order by place), '')
    from {_EACH.format(list="content", alias="parts", value="part")}
    where part->>'type' = 'text' $$""",
    f"""create function nbd.spoken(payload json) returns text
    language sql immutable as $$
    select coalesce(string_agg(case block->>'type' when 'text' then block->>'text'
        when 'tool_result' then nbd.texts_in(block->'content') end, chr(10) order by place), '')
    from {_EACH.format(list="payload->'blocks'", alias="blocks", value="block")} $$""",
    """create function nbd.field_texts(payload json) returns text
    language sql immutable as $$
    select coalesce(string_agg(payload->'fields'->>key, chr(10) order by place)
        filter (where json_typeof(value) = 'string'), '')
    from json_each(nbd.fields_in(payload->'fields'))
        with ordinality as fields (key, value, place) $$""",
    """create function nbd.text_of(kind text, payload text) returns text
    language sql immutable as $$
    select case kind when 'message' then nbd.spoken(nbd.json_or_null(payload))
        when 'compaction' then coalesce(nbd.json_or_null(payload)->>'summary', '')
        else nbd.field_texts(nbd.json_or_null(payload)) end $$""",
    """create function nbd.count_in(usage_json text, name text) returns bigint
    language sql immutable as $$
    select case when found ~ '^-?[0-9]{1,18}$' then found::bigint end
    from (select nbd.json_or_null(usage_json)->>name as found) used $$""",
)


def folded(has_icu: bool) -> str:
    """Return the function that makes a text small, of any language where the server can."""
    place = ' collate "und-x-icu"' if has_icu else ""
    return f"""create function nbd.folded(given text) returns text
    language sql immutable parallel safe as $$ select lower(given{place}) $$"""


_ERROR = """case when e.stop_reason in ('error', 'aborted')
    then nbd.json_or_null(e.payload)->'reply'->>'error' end"""

# Where each session resumes: null at the root.
POSITIONS = """select distinct on (session_id) session_id, entry_id as position_id from (
        select session_id, entry_id, seq from nbd.moves
        union all select session_id, id, seq from nbd.entries where moves_leaf) placed
    order by session_id, seq desc"""

# The entries of a fork carry the run ids of their source: what they cost was paid there.
_PAID_HERE = "(r.session_id is null or r.session_id = e.session_id)"
_DAY = _made_at("e.created_at - ((e.created_at % 86400000000) + 86400000000) % 86400000000")


def _blocks_of(kind: str) -> str:
    blocks = _EACH.format(
        list="nbd.json_or_null(e.payload)->'blocks'", alias="blocks", value="block"
    )
    return (
        f"nbd.entries e cross join lateral {blocks} "
        f"where e.kind = 'message' and block->>'type' = '{kind}' order by e.seq, place"
    )


_USED = ", ".join(f"nbd.count_in(e.usage_json, '{name}') as {name}" for name in _TOKEN_NAMES)

VIEWS: dict[str, str] = {
    "sessions": f"""
        select s.id, s.parent_session_id, {_entry("s.parent_entry_id")},
            {_made_at("s.created_at")} as created_at,
            coalesce(f.preview, '') as title, coalesce(u.entries, 0) as entries,
            coalesce(u.leaves, 0) as leaves, u.models,
            {_made_at("coalesce(l.created_at, s.created_at)")} as last_at, u.cost_usd,
            p.position_id
        from nbd.sessions s left join (
            select session_id, count(*) as entries,
                count(*) - count(distinct parent_id) as leaves, max(seq) as last_seq,
                min(seq) filter (where role = 'user' and not meta) as first_seq,
                sum(cost_usd) as cost_usd,
                nullif(string_agg(distinct model, ', ' order by model), '') as models
            from nbd.entries group by session_id) u on u.session_id = s.id
        left join nbd.entries l on l.seq = u.last_seq
        left join nbd.entries f on f.seq = u.first_seq
        left join ({POSITIONS}) p on p.session_id = s.id
        order by s.counter
    """,
    "entries": f"""
        select {_HEADER}, e.kind, e.meta, e.model, e.stop_reason,
            {_TOKENS}, e.cost_usd, e.seconds, e.ttft_s, e.preview, e.moves_leaf, e.source_id,
            {_made_at("e.created_at")} as created_at,
            nbd.text_of(e.kind, e.payload) as text, {_ERROR} as error, e.payload
        from nbd.entries e
    """,
    "messages": f"""
        select {_HEADER}, e.meta, e.model, e.stop_reason, {_TOKENS},
            e.cost_usd, e.seconds, e.ttft_s, {_made_at("e.created_at")} as created_at,
            nbd.text_of(e.kind, e.payload) as text, {_ERROR} as error,
            nbd.json_or_null(e.payload) as payload
        from nbd.entries e where e.kind = 'message'
    """,
    "runs": f"""
        select r.counter, r.session_id, r.id, r.kind, r.model, r.params_json as params, r.moves,
            {_entry("r.start_leaf_id")}, r.input_ids, {_entry("r.rerun_of")},
            r.experiment_id, r.cell, r.origin, r.owner,
            {_made_at("r.created_at")} as started_at, e.outcome, e.error, e.steps,
            {_entry("e.leaf_id")},
            e.seconds, {_USED},
            e.cost_usd, {_made_at("e.created_at")} as ended_at,
            i.preview as input, a.n as leaf_n, a.preview as answer, c.system, c.tools_json as tools
        from nbd.runs r
        left join nbd.run_ends e on e.run_id = r.id
        left join nbd.contexts c on c.digest = r.context_digest
        left join (
            select distinct on (session_id, run_id) session_id, run_id, preview from nbd.entries
            where role = 'user' and not meta order by session_id, run_id, seq
        ) i on i.run_id = r.id and i.session_id = r.session_id
        left join nbd.entries a on a.id = nbd.uuid_or_null(e.leaf_id)
        order by r.counter
    """,
    "tool_calls": f"""
        select {_HEADER}, block->>'id' as call_id, block->>'name' as name,
            block->>'arguments' as arguments,
            nbd.is_json(block->>'arguments') as args_valid,
            coalesce(block->>'complete', 'true') = 'true' as complete,
            coalesce(block->>'provider_run', 'false') = 'true' as provider_run,
            {_made_at("e.created_at")} as created_at
        from {_blocks_of("tool_call")}
    """,
    "tool_results": f"""
        select {_HEADER}, block->>'call_id' as call_id, block->>'name' as name,
            coalesce(block->>'is_error', 'false') = 'true' as is_error,
            case when coalesce(json_typeof(block->'content'), 'array') = 'array'
                then nbd.texts_in(block->'content') end as text,
            {_made_at("e.created_at")} as created_at
        from {_blocks_of("tool_result")}
    """,
    "branches": f"""
        select e.seq, e.session_id, e.n, e.id as leaf_id, e.depth, e.role, e.model, e.stop_reason,
            e.preview, {_made_at("e.created_at")} as created_at
        from nbd.entries e
        where not exists (
            select 1 from nbd.entries c where c.parent_id = e.id and c.session_id = e.session_id)
        order by e.seq
    """,
    "usage": f"""
        select e.session_id, e.model, {_DAY} as day, count(*) as messages,
            {", ".join(f"coalesce(sum(e.{name}), 0)::bigint as {name}" for name in _TOKEN_NAMES)},
            coalesce(sum({_SUM_OF_TOKENS}), 0)::bigint as total_tokens,
            count(*) - count(e.cost_usd) as unpriced, sum(e.cost_usd) as cost_usd
        from nbd.entries e left join nbd.runs r on r.id = e.run_id
        where e.model is not null and {_PAID_HERE}
        group by e.session_id, e.model, day order by e.session_id, e.model, day
    """,
    "annotations": f"""
        select a.counter, a.session_id, {_entry("a.target_id")}, a.name, a."by" as author,
            a.value_json, a.note, {_made_at("a.created_at")} as created_at
        from (select *, row_number() over (
                partition by session_id, target_id, name, "by" order by counter desc) as newest
            from nbd.annotations) a
        where a.newest = 1 and a.value_json <> 'null' order by a.counter
    """,
}
