from __future__ import annotations

from pathlib import Path

from nbdurable.stores.base import Store
from nbdurable.stores.conformance import StoreContract
from nbdurable.stores.duckdb import DuckDBStore


class TestDuckDBStore(StoreContract):
    def make_store(self, folder: Path) -> DuckDBStore:
        return DuckDBStore(folder / "store.duckdb")

    def reopen(self, store: Store) -> DuckDBStore:
        store.close()
        return DuckDBStore(store.name)
