"""The store over a PostgreSQL server: what every store promises."""

from __future__ import annotations

from pathlib import Path

import pytest
from postgres_server import Server

from nbdurable.stores.base import Store
from nbdurable.stores.conformance import StoreContract
from nbdurable.stores.postgres import PostgresStore

pytestmark = pytest.mark.postgres


class TestPostgresStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, postgres: Server) -> None:
        self.server = postgres

    def make_store(self, folder: Path) -> PostgresStore:
        self.url = self.server.emptied()
        return PostgresStore(self.url)

    def reopen(self, store: Store) -> PostgresStore:
        store.close()
        return PostgresStore(self.url)
