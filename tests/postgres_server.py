"""A PostgreSQL server on loopback for the tests, run by a user who is not root, and its databases.

Owns one server per process of tests, in a folder of its own, and one database that is emptied for
each test.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import psycopg

from nbdurable.stores.duckdb.schema import TABLES
from nbdurable.stores.postgres import PostgresStore
from nbdurable.stores.postgres.schema import SEQUENCES

PASSWORD = "s3cr:t/päss@w%rd"
_EMPTIED = "emptied"


def programs() -> Path | None:
    """Return the folder of the newest server's programs, or None where there is no server."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: p.parts[-3:])
    path = shutil.which("postgres") or (str(found[-1]) if found else None)
    return Path(path).resolve().parent if path else None


class Server:
    """A server that can be stopped, killed and started again at one port."""

    def __init__(self) -> None:
        found = programs()
        assert found is not None, "PostgreSQL is not installed; run python tests/setup_system.py"
        self._programs = found
        self.folder = Path(tempfile.mkdtemp(prefix="nbdurable-postgres-"))
        self.data = self.folder / "data"
        self._user = _user()
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self.port = _free_port()
        self._names = count(1)
        try:
            self._make()
        except BaseException:
            self.remove()
            raise

    def _make(self) -> None:
        self._run("initdb", "-D", self.data, "-U", "nb", "-A", "trust", "-E", "UTF8",
                  "--locale=C.UTF-8", "--no-sync")  # fmt: skip
        hba = self.data / "pg_hba.conf"
        # One role must give its password, so that there is one to be kept secret.
        hba.write_text("host all guarded 127.0.0.1/32 scram-sha-256\n" + hba.read_text())
        with (self.data / "postgresql.conf").open("a") as settings:
            settings.write(
                f"port = {self.port}\nlisten_addresses = '127.0.0.1'\n"
                f"unix_socket_directories = '{self.folder}'\nmax_connections = 60\n"
                "shared_buffers = 32MB\nfsync = off\nfull_page_writes = off\n"
                "log_min_messages = warning\n"
            )
        self.start()
        self.sql(f"create database {_EMPTIED} template template0")
        PostgresStore(self.url(_EMPTIED)).close()
        self.sql(f"create role guarded login password '{PASSWORD}'")

    # -- life ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self._run("pg_ctl", "-D", self.data, "-l", self.folder / "log", "-w", "-t", "60", "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; ``immediate`` is as a power cut of the server alone."""
        self._run("pg_ctl", "-D", self.data, "-w", "-t", "60", "-m", mode, "stop")

    def restart(self, mode: str = "fast") -> None:
        """Stop the server and start it again."""
        self.stop(mode)
        self.start()

    def remove(self) -> None:
        """Kill the server and remove its folder."""
        pid_file = self.data / "postmaster.pid"
        if pid_file.exists():
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- databases -----------------------------------------------------------------------------

    def url(self, database: str, user: str = "nb", password: str = "") -> str:
        """Return the address of a database."""
        secret = f":{password}" if password else ""
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{database}"

    def database(self, options: str = "") -> str:
        """Make an empty database; return its address."""
        name = f"d{next(self._names)}"
        self.sql(f"create database {name} template template0 {options}")
        return self.url(name)

    def emptied(self) -> str:
        """Return the address of the one database whose store is emptied again and again.

        That takes a tenth of the time of making one.
        """
        url = self.url(_EMPTIED)
        deletes = [f"delete from nbd.{table}" for table in TABLES if table != "meta"]
        restarts = [f"alter sequence nbd.{sequence} restart" for sequence in SEQUENCES]
        self.sql("; ".join([*deletes, *restarts]), url)
        return url

    def sql(self, query: str, url: str | None = None) -> list[tuple[object, ...]]:
        """Run one statement over a connection of its own; return its rows."""
        with psycopg.connect(url or self.url("postgres"), autocommit=True) as connection:
            cursor = connection.execute(query)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def kill_backends(self, url: str) -> int:
        """End every connection to a database; return how many there were."""
        name = url.rpartition("/")[2]
        rows = self.sql(
            f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"
        )
        return len(rows)

    # -- programs ------------------------------------------------------------------------------

    def _run(self, program: str, *arguments: object) -> None:
        line: Sequence[str] = [str(self._programs / program), *map(str, arguments)]
        if self._user is not None:
            record = pwd.getpwnam(self._user)
            line = [
                "setpriv", f"--reuid={record.pw_uid}", f"--regid={record.pw_gid}",
                "--clear-groups", "--", *line,
            ]  # fmt: skip
        # The server inherits what it is started with: a pipe would be held open by it.
        with (self.folder / "programs.log").open("a") as log:
            done = subprocess.run(
                line, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}, preexec_fn=_take_interrupts,
            )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {(self.folder / 'programs.log').read_text()}")


def _take_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.setsid()  # Ctrl-C at the tests is not one at the server


def _user() -> str | None:
    """Return whom to run the server as where this user is root, which a server refuses to be."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise RuntimeError("no user is there to run a server; make one called postgres")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
