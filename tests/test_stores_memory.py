from __future__ import annotations

from pathlib import Path

from nbdurable.stores.conformance import StoreContract
from nbdurable.stores.memory import MemoryStore


class TestMemoryStore(StoreContract):
    def make_store(self, folder: Path) -> MemoryStore:
        return MemoryStore()
