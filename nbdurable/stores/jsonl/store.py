"""A recording as a store: its sessions in memory, its file left as it is (B1)."""

from __future__ import annotations

import os
from pathlib import Path

from nbdurable.errors import ImportFormatError, NbDurableError, StoreError
from nbdurable.stores.jsonl.reader import opened
from nbdurable.stores.memory import MemoryStore


class RecordingStore(MemoryStore):
    """The sessions of a recording, in memory; what is added is lost at `close`.

    Parameters
    ----------
    path : str or Path
        A file that `Session.export` wrote.

    Raises
    ------
    StoreError
        The file is not there, cannot be read, is no recording, or is damaged.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self._name = os.path.realpath(path)
        try:
            with opened(Path(path)) as recording:
                for section in recording.sections(self.put_blob):
                    self.create_session(section.session, section.entries, beside=section.beside)
        except StoreError:
            raise
        except (ImportFormatError, NbDurableError) as exc:
            raise StoreError(f"file {os.fspath(path)!r} is no store: {exc}") from exc

    @property
    def name(self) -> str:
        """The recording's path, without symbolic links."""
        return self._name

    def __repr__(self) -> str:
        return f"RecordingStore({self._name!r})"
