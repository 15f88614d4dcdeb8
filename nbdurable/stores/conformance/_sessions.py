"""Promises about sessions: identity, creation in one go, listing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nbdurable.errors import EntryError, NbDurableError, SessionExists, SessionNotFound
from nbdurable.stored import SessionSummary, StoredEntry
from nbdurable.stores.base import Store
from nbdurable.stores.conformance._base import (
    NOW,
    ContractBase,
    annotation_of,
    chain,
    contents,
    end_of,
    ids_in,
    new_id,
    plan_of,
    run_of,
    session_of,
    stored,
)

SESSION_IDS = {
    "quotes": 'it\'s a "quoted" `id`',
    "slashes": "../a/b\\c",
    "spaces": "  two  spaces ",
    "line ends": "a\nb\r\nc\u2028d",
    "sql": "'; drop table entries; --",
    "emoji": "👩‍👩‍👧‍👦 🇳🇿 é",
    "digits": "0042",
    "one kB": "x" * 1024,
    "blank": "\n\n",
    "percent": "%s {0} $1 ?",
}

WITH_A_SESSION: dict[str, Callable[[Store], object]] = {
    "load_session": lambda store: store.load_session("lost"),
    "append": lambda store: store.append("lost", [stored("lost")]),
    "append nothing": lambda store: store.append("lost"),
    "load_entries": lambda store: store.load_entries("lost"),
    "move": lambda store: store.move("lost", None, NOW),
    "load_moves": lambda store: store.load_moves("lost"),
    "annotate": lambda store: store.annotate([annotation_of("lost")]),
    "load_annotations": lambda store: store.load_annotations("lost"),
    "start_run": lambda store: store.start_run(run_of("lost")),
    "end_run": lambda store: store.end_run(end_of(run_of("lost"))),
    "load_runs": lambda store: store.load_runs("lost"),
    "save_experiment": lambda store: store.save_experiment(plan_of("lost")),
    "load_experiments": lambda store: store.load_experiments("lost"),
}


class SessionPromises(ContractBase):
    """Sessions."""

    # B59
    def test_a_store_has_every_method_of_the_protocol(self, store: Store) -> None:
        assert isinstance(store, Store)

    # B59
    def test_a_store_has_a_name_to_show(self, store: Store) -> None:
        assert isinstance(store.name, str) and store.name

    # B2
    def test_a_session_is_loaded_as_it_was_created(self, store: Store) -> None:
        fork = session_of("child", parent_session_id="s", parent_entry_id=new_id())

        store.create_session(fork)

        assert store.load_session("child") == fork

    # B2
    def test_a_session_without_entries_has_none(self, store: Store) -> None:
        assert store.load_entries("s") == []

    # B48
    def test_a_session_is_created_with_its_entries_in_one_go(self, store: Store) -> None:
        entries = chain(3, "new")

        returned = store.create_session(session_of("new"), entries)

        assert [entry.id for entry in returned] == [entry.id for entry in entries]
        assert store.load_entries("new") == list(returned)

    # B8
    def test_a_taken_id_is_refused(self, store: Store) -> None:
        with pytest.raises(SessionExists, match="'s'"):
            store.create_session(session_of("s", created_at=NOW + 5))

    # B8
    def test_a_refused_creation_leaves_nothing(self, store: Store) -> None:
        store.append("s", chain(2))
        before = contents(store)

        with pytest.raises(SessionExists, match="'s'"):
            store.create_session(session_of("s", parent_session_id="other"), chain(2))

        assert contents(store) == before

    # B8
    def test_a_refused_creation_does_not_move_the_counter(self, store: Store) -> None:
        [first] = store.append("s", [stored()])

        with pytest.raises(SessionExists, match="'s'"):
            store.create_session(session_of("s"), chain(2))

        [second] = store.append("s", [stored()])
        assert second.seq == first.seq + 1

    # B60
    @pytest.mark.parametrize("bad", ["duplicate", "unknown parent", "later parent"])
    def test_a_session_with_a_bad_entry_is_not_created(self, store: Store, bad: str) -> None:
        first, second = chain(2, "new")
        batch = {
            "duplicate": [first, first],
            "unknown parent": [first, stored("new", stored().id)],
            "later parent": [second, first],
        }[bad]

        with pytest.raises(EntryError):
            store.create_session(session_of("new"), batch)

        with pytest.raises(SessionNotFound, match="'new'"):
            store.load_session("new")
        assert store.create_session(session_of("new"), [first])[0].n == 1

    # B8
    @pytest.mark.parametrize("method", WITH_A_SESSION)
    def test_an_unknown_session_is_refused(self, store: Store, method: str) -> None:
        with pytest.raises(SessionNotFound, match="'lost'"):
            WITH_A_SESSION[method](store)

    # B8
    @pytest.mark.parametrize("method", WITH_A_SESSION)
    def test_naming_an_unknown_session_does_not_create_it(self, store: Store, method: str) -> None:
        before = contents(store)

        with pytest.raises(SessionNotFound):
            WITH_A_SESSION[method](store)

        assert contents(store) == before

    # B9
    @pytest.mark.parametrize("kind", SESSION_IDS)
    def test_any_text_is_a_session_id(self, store: Store, kind: str) -> None:
        session_id = SESSION_IDS[kind]

        store.create_session(session_of(session_id), [stored(session_id)])

        assert store.load_session(session_id).id == session_id
        assert [entry.session_id for entry in store.load_entries(session_id)] == [session_id]

    # B9
    def test_session_ids_that_look_alike_are_different(self, store: Store) -> None:
        for session_id in ("a", "A", "a ", "e\u0301", "\u00e9"):
            store.create_session(session_of(session_id), [stored(session_id, text=session_id)])

        assert store.load_entries("e\u0301") != store.load_entries("\u00e9")
        assert {line.session.id for line in store.list_sessions()} >= {"a", "A", "a "}

    # B9
    @pytest.mark.parametrize("session_id", ["", "nul\0inside"])
    def test_an_empty_id_or_one_with_nul_is_refused(self, store: Store, session_id: str) -> None:
        before = contents(store)

        with pytest.raises(NbDurableError, match="session id"):
            store.create_session(session_of(session_id))

        assert contents(store) == before

    # -- listing -------------------------------------------------------------------------------

    # B4
    def test_sessions_are_listed_by_their_newest_entry_not_by_time(self, store: Store) -> None:
        store.append("s", [stored("s", created_at=NOW + 10**12)])
        store.append("other", [stored("other", created_at=0)])

        assert [line.session.id for line in store.list_sessions()] == ["other", "s"]

    # B4
    def test_a_session_just_created_is_listed_first(self, store: Store) -> None:
        store.append("s", [stored("s")])
        store.create_session(session_of("new", created_at=NOW + 10**9))

        assert store.list_sessions()[0].session.id == "new"

    # B61
    def test_a_listing_counts_entries_and_leaves(self, store: Store) -> None:
        root, left, right = stored(), stored(), stored()
        store.append("s", [root])
        store.append("s", [_under(root, left), _under(root, right), stored()])

        line = _line(store, "s")

        assert (line.entries, line.leaves) == (4, 3)

    # B61
    def test_an_empty_session_is_listed_with_zeros(self, store: Store) -> None:
        line = _line(store, "s")

        assert (line.title, line.entries, line.leaves, line.models, line.cost_usd) == (
            "",
            0,
            0,
            (),
            0.0,
        )

    # B61
    def test_a_title_is_the_first_user_message_that_is_not_meta(self, store: Store) -> None:
        store.append("s", [stored(meta=True, text="a skill"), stored(role=None, kind="note")])
        store.append("s", [stored(text="the question"), stored(text="the next")])

        assert _line(store, "s").title == "the question"

    # B4
    def test_last_at_is_the_time_of_the_newest_entry_by_seq(self, store: Store) -> None:
        store.append("s", [stored(created_at=NOW + 900), stored(created_at=NOW + 5)])

        assert _line(store, "s").last_at == NOW + 5

    # B61
    def test_a_listing_names_each_model_once(self, store: Store) -> None:
        for model in ("openai/a", "local", "openai/a", None):
            store.append("s", [stored(role="assistant", model=model)])

        assert sorted(_line(store, "s").models) == ["local", "openai/a"]

    # B61
    def test_a_listing_sums_the_known_costs(self, store: Store) -> None:
        for cost_usd in (0.25, None, 0.5):
            store.append("s", [stored(role="assistant", cost_usd=cost_usd)])

        assert _line(store, "s").cost_usd == 0.75

    # B9
    def test_every_session_is_listed_once(self, store: Store) -> None:
        for session_id in SESSION_IDS.values():
            store.create_session(session_of(session_id))

        listed = [line.session.id for line in store.list_sessions()]

        assert sorted(listed) == sorted(["s", "other", *SESSION_IDS.values()])
        assert ids_in(store) == []


def _under(parent: StoredEntry, entry: StoredEntry) -> StoredEntry:
    return stored(entry.session_id, parent.id, id=entry.id)


def _line(store: Store, session_id: str) -> SessionSummary:
    return next(line for line in store.list_sessions() if line.session.id == session_id)
