"""Where a database is: an address read once, and a name for it without its secrets (B69).

The one idea: nothing outside this module sees the address as it was given. What libpq says of one
that it cannot read may hold a piece of the password, and is never repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

import psycopg
from psycopg import pq

from nbdurable.errors import StoreError

# What an address leaves open. A peer that is gone is noticed after a minute, not after hours.
_GIVEN = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
    "application_name": "nbdurable",
}
_SECRET = ("password", "sslpassword", "passfile", "oauth_client_secret")


@dataclass(frozen=True, slots=True)
class Address:
    """A database to connect to; its ``repr`` is its name."""

    name: str
    params: Mapping[str, str] = field(repr=False)

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """Return a new connection in autocommit, which takes parameters as ``$1``.

        Raises
        ------
        StoreError
            There is no server, or it refuses.
        """
        try:
            return psycopg.connect(
                **self.params,  # type: ignore[arg-type]
                autocommit=True,
                cursor_factory=psycopg.RawCursor,
                prepare_threshold=None,  # a pooler may hand the next statement to another server
            )
        except psycopg.Error as exc:
            raise StoreError(
                f"store {self.name!r} cannot be reached ({self.without_secrets(exc)}); "
                "check the address, and that the server runs and lets you in"
            ) from None

    def without_secrets(self, exc: BaseException) -> str:
        """Return the first line of an error's text; secrets are shown as ``***``."""
        lines = str(exc).splitlines()
        text = lines[0] if lines else type(exc).__name__
        for name in _SECRET:
            if secret := self.params.get(name):
                text = text.replace(secret, "***")
        return text


def read_address(url: str) -> Address:
    """Return the address of a ``postgresql://`` URL.

    Raises
    ------
    StoreError
        It cannot be read.
    """
    try:
        parsed = _parsed(url)
    except (psycopg.Error, ValueError):
        raise StoreError(
            "address of a PostgreSQL store cannot be read; give "
            "'postgresql://user:password@host:port/database', with odd characters as %XX"
        ) from None
    params = {**_GIVEN, **parsed, "client_encoding": "utf8"}
    return Address(_name_of(parsed), params)


def _parsed(url: str) -> dict[str, str]:
    parsed = {
        option.keyword.decode(): option.val.decode()
        for option in pq.Conninfo.parse(url.encode())
        if option.val is not None
    }
    # Where a slash in a password was not written as %2F, a piece of it passes for port or database.
    path = url.partition("://")[2].partition("/")[2].partition("?")[0]
    ports = parsed.get("port", "").split(",")
    if "\0" in url or "@" in path or not all(port.isdecimal() or not port for port in ports):
        raise ValueError("address")
    return parsed


def _name_of(parsed: Mapping[str, str]) -> str:
    defaults = {
        option.keyword.decode(): option.val.decode()
        for option in pq.Conninfo.get_defaults()
        if option.val is not None
    }

    def known(keyword: str) -> str:
        return parsed.get(keyword) or defaults.get(keyword, "")

    host = known("host") or known("hostaddr")
    database = quote(known("dbname") or known("user"), safe="")
    ports = known("port").split(",")
    if host.startswith(("/", "@")):
        port = "" if ports[0] in ("", "5432") else f"&port={ports[0]}"
        return f"postgresql:///{database}?host={quote(host)}{port}"
    hosts = host.split(",") if host else [""]
    ports = ports * len(hosts) if len(ports) == 1 else ports
    places = [
        f"[{one}]" * (":" in one) + one * (":" not in one) + f":{port}" * (port not in ("", "5432"))
        for one, port in zip(hosts, ports, strict=False)
    ]
    return f"postgresql://{','.join(places)}/{database}"
