"""Whether anybody else wrote to the file, told by a `stat` and without attaching it (B11).

Owns what the file looked like when this process let it go. The one idea: while the file is attached
nobody else can write, and otherwise every write changes length or time of the file or of its log;
no record beside the file can be behind it, whenever a process was killed.
"""

from __future__ import annotations

import threading

from nbdurable.stores.duckdb.place import Fingerprint, fingerprint, identity


class Witness:
    """Count what others wrote; from any thread."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._is_attached = False
        self._seen: Fingerprint | None = None
        self._foreign = 0

    @property
    def foreign(self) -> int:
        """How often others were found to have written, as far as looked."""
        return self._foreign

    def look(self, file: tuple[int, int]) -> int:
        """Return `foreign` as of now; a file that is not `file` any more is no news."""
        with self._lock:
            if not self._is_attached and identity(self._path) == file:
                self._compare()
            return self._foreign

    def attached(self) -> None:
        """Look a last time, right after the file was attached."""
        with self._lock:
            self._compare()
            self._is_attached = True

    def leaving(self) -> None:
        """Remember what the file looks like, right before it is detached."""
        with self._lock:
            self._seen = fingerprint(self._path)
            self._is_attached = False

    def _compare(self) -> None:
        now = fingerprint(self._path)
        if now is None or now != self._seen:
            self._foreign += 1
            self._seen = now
