"""The contract of the `Store` protocol as tests, for every store (B59).

Owns the promises that a store makes whatever its medium; needs pytest, and hypothesis for one of
them. Subclass `StoreContract` in a test file::

    from nbdurable.stores.conformance import StoreContract


    class TestMyStore(StoreContract):
        def make_store(self, folder):
            return MyStore(folder / "chats.db")

        def reopen(self, store):
            store.close()
            return MyStore(store.name)

A store whose rows die with it leaves `reopen` out; what needs it is then skipped.
"""

from __future__ import annotations

import pytest

# Before the import of the tests, so that their asserts show what they compared.
pytest.register_assert_rewrite(
    *(
        f"{__name__}.{module}"
        for module in (
            "_beside",
            "_entries",
            "_life",
            "_position",
            "_random",
            "_runs",
            "_sessions",
            "_threads",
            "_together",
            "_values",
        )
    )
)

from nbdurable.stores.conformance._base import (  # noqa: E402
    chain,
    contents,
    new_id,
    position_of,
    stored,
)
from nbdurable.stores.conformance._beside import BesidePromises  # noqa: E402
from nbdurable.stores.conformance._entries import EntryPromises  # noqa: E402
from nbdurable.stores.conformance._life import LifePromises  # noqa: E402
from nbdurable.stores.conformance._position import PositionPromises  # noqa: E402
from nbdurable.stores.conformance._random import RandomPromises  # noqa: E402
from nbdurable.stores.conformance._runs import RunPromises  # noqa: E402
from nbdurable.stores.conformance._sessions import SessionPromises  # noqa: E402
from nbdurable.stores.conformance._threads import ThreadPromises  # noqa: E402
from nbdurable.stores.conformance._together import TogetherPromises  # noqa: E402
from nbdurable.stores.conformance._values import ValuePromises  # noqa: E402

__all__ = ["StoreContract", "chain", "contents", "new_id", "position_of", "stored"]


class StoreContract(
    SessionPromises,
    EntryPromises,
    PositionPromises,
    ValuePromises,
    RunPromises,
    BesidePromises,
    TogetherPromises,
    ThreadPromises,
    LifePromises,
    RandomPromises,
):
    """Every promise of a store; a subclass says how to make one."""
