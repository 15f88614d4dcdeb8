"""Forget a session of a database: all its rows, and what nothing else needs, in one transaction.

The one idea: the server keeps what a transaction deletes until it is vacuumed, and longer in its
own log and copies, so that whoever asked is told what is left to do there.
"""

from __future__ import annotations

from typing import Any

from nbdurable.stores.duckdb.state import no_session
from nbdurable.stores.forgetting import COPIES, NOT_KNOWN, Forgotten
from nbdurable.stores.postgres.line import Line, Transaction

_NOT_KNOWN = (
    "deleted rows until the server is vacuumed (VACUUM FULL nbd.entries, nbd.blobs)",
    "the server's log, archives of it, replicas and backups",
    "answers in flight kept on other machines",
    *NOT_KNOWN,
)
_OF_SESSION = ("annotations", "experiments", "run_ends", "runs", "moves", "entries")

_OWN_BLOBS = """
    select distinct (regexp_matches(payload, '"sha256":\\s*"([0-9a-f]{64})"', 'g'))[1] as sha256
    from nbd.entries where session_id = $1
"""
_IS_NEEDED = """
    exists (select 1 from nbd.entries
        where session_id <> $1 and position(own.sha256 in payload) > 0)
    or exists (select 1 from nbd.experiments
        where session_id <> $1 and position(own.sha256 in plan_json) > 0)
    or exists (select 1 from nbd.annotations
        where session_id <> $1 and position(own.sha256 in value_json) > 0)
"""
_FREE_BLOBS = f"""
    select b.sha256 from nbd.blobs b join ({_OWN_BLOBS}) own using (sha256) where not ({_IS_NEEDED})
"""
_SHARED_BLOBS = f"""
    select b.sha256 from nbd.blobs b join ({_OWN_BLOBS}) own using (sha256) where {_IS_NEEDED}
"""
_FREE_CONTEXTS = """
    select c.digest from nbd.contexts c
    where exists (select 1 from nbd.runs r where r.session_id = $1 and r.context_digest = c.digest)
    and not exists (
        select 1 from nbd.runs r where r.session_id <> $1 and r.context_digest = c.digest)
"""
_KEPT = """
    select (select count(*) from nbd.sessions where id <> $1),
        (select count(*) from nbd.entries where session_id <> $1),
        (select count(*) from nbd.entries where session_id = $1 and source_id is not null)
"""
_UNNAMED = """
    update nbd.sessions set parent_session_id = null, parent_entry_id = null
    where parent_session_id = $1 returning id
"""


def forget_in_database(line: Line, name: str, session_id: str, *, dry_run: bool) -> Forgotten:
    """Forget a session, or tell what that would remove.

    Raises
    ------
    SessionNotFound
        There is no such session.
    StoreError
        The server is away, or refuses; the session is there, or gone, as a whole.
    """
    earlier: list[Forgotten] = []  # what was told in a try whose outcome the server left unknown

    def plan(transaction: Transaction) -> Forgotten:
        there, *found = transaction.lock([session_id], *_questions(session_id))
        if not there:
            if earlier:
                return earlier[-1]
            raise no_session(session_id, name)
        told = _told(name, session_id, found, dry_run=dry_run)
        if not dry_run:
            blobs, contexts = ([row[0] for row in rows] for rows in found[-2:])
            _delete(transaction, session_id, blobs, contexts)
            earlier.append(told)
        return told

    return line.write(plan)


def _questions(session_id: str) -> list[tuple[str, list[object]]]:
    counts = [f"select count(*) from nbd.{table} where session_id = $1" for table in _OF_SESSION]
    queries = [*counts, _KEPT, COPIES.format(nbd="nbd"), _SHARED_BLOBS, _FREE_BLOBS, _FREE_CONTEXTS]
    return [(query, [session_id]) for query in queries]


def _told(
    name: str, session_id: str, found: list[list[tuple[Any, ...]]], *, dry_run: bool
) -> Forgotten:
    *counts, kept, copies, shared, blobs, contexts = found
    numbers = {table: rows[0][0] for table, rows in zip(_OF_SESSION, counts, strict=True)}
    return Forgotten(
        store=name,
        session_id=session_id,
        is_dry_run=dry_run,
        removed={
            **{table: numbers[table] for table in reversed(_OF_SESSION)},
            "contexts": len(contexts),
            "blobs": len(blobs),
        },
        kept_sessions=kept[0][0],
        kept_entries=kept[0][1],
        copies=dict(copies),
        shared_blobs=len(shared),
        imported=kept[0][2],
        not_known=_NOT_KNOWN,
    )


def _delete(
    transaction: Transaction, session_id: str, blobs: list[str], contexts: list[str]
) -> None:
    transaction.ask(
        ("delete from nbd.blobs where sha256 = any($1::text[]) returning sha256", [blobs]),
        ("delete from nbd.contexts where digest = any($1::text[]) returning digest", [contexts]),
        *(
            (f"delete from nbd.{table} where session_id = $1 returning 1", [session_id])
            for table in _OF_SESSION
        ),
        (_UNNAMED, [session_id]),
        ("delete from nbd.sessions where id = $1 returning 1", [session_id]),
    )
