"""The command line: look into a store, fetch the local model, see the demo.

Owns arguments, exit codes and the form of errors: one line to stderr. All else is done by what
notebooks use too.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nbdurable.annotations import Annotations
from nbdurable.commands import doctor, forget
from nbdurable.commands.listing import list_sessions
from nbdurable.commands.places import (
    check_session,
    console,
    existing_path,
    existing_store,
    named,
    named_file,
)
from nbdurable.errors import NbDurableError, StoreError, shown
from nbdurable.outline import position
from nbdurable.reprs import one_line

if TYPE_CHECKING:
    from types import FrameType
    from typing import TypeAlias

    from nbdurable.formats.report import ImportReport
    from nbdurable.loaded import Loaded

    _Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]

_EPILOG = """\
examples:
  nbdurable demo                          lose a process in mid-answer, and nothing else
  nbdurable local fetch                   get the weights of model="local", once
  nbdurable ls                            the sessions in ./nbdurable.duckdb
  nbdurable ls chats.duckdb | cut -f1     their ids: into a pipe go tab-separated lines
  nbdurable show support-42               one session as a tree
  nbdurable show chats.duckdb support-42
  nbdurable export support-42 talk.jsonl  a session as text, without loss
  nbdurable import talk.jsonl --store other.duckdb
  nbdurable import chatgpt-export.zip     conversations of other programs, as trees
  nbdurable copy a.duckdb b.duckdb        what b.duckdb lacks of a.duckdb
  nbdurable check chats.duckdb            whether all that was stored is there and hangs together
  nbdurable backup chats.duckdb copy.duckdb
  nbdurable forget support-42 --dry-run   what would be removed for good, and what still holds it
  nbdurable doctor                        what is installed, and what is wrong here

STORE is a file; without it $NBDURABLE_STORE, else nbdurable.duckdb in this folder.
exit codes: 0 done, 1 it could not be done or is damaged, 2 wrong arguments, 130 interrupted.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; `argv` defaults to the process's arguments."""
    _write_any_text()
    arguments = _parser().parse_args(argv)
    interrupts: list[int] = []
    try:
        with _warnings_in_a_line(), _noted(interrupts):
            return int(arguments.command(arguments))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # the reader has what it wanted; keep Python from failing again as it flushes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (NbDurableError, OSError) as exc:
        if interrupts:
            return 130
        print(f"nbdurable: {one_line(_told(exc), 1_000)}", file=sys.stderr)
        return 1
    except Exception:
        if interrupts:  # DuckDB makes a RuntimeError of it, an extension's import an ImportError
            return 130
        raise


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nbdurable",
        description="Conversations with language models that you do not lose.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    number = doctor.installed_version("nbdurable") or "from source, not installed"
    parser.add_argument("--version", action="version", version=f"nbdurable {number}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    listing = commands.add_parser("ls", help="list the sessions of a store, newest first")
    listing.add_argument("store", nargs="?", type=named, metavar="STORE", help="the store's file")
    listing.set_defaults(command=list_sessions)

    tree = commands.add_parser("show", help="show a session as a tree")
    tree.add_argument("store", nargs="?", type=named, metavar="STORE", help="the store's file")
    tree.add_argument("session", metavar="SESSION", help="the session's id")
    tree.add_argument("--ids", action="store_true", help="add the id of each entry")
    tree.set_defaults(command=_show)

    _add_files(commands)

    check = commands.add_parser("check", help="look for damage in a store; changes nothing")
    check.add_argument("file", nargs="?", type=named, metavar="FILE", help="the store's file")
    check.set_defaults(command=_check)

    repair = commands.add_parser("repair", help="mend a store that a crash damaged")
    repair.add_argument("file", nargs="?", type=named, metavar="FILE", help="the store's file")
    repair.set_defaults(command=_repair)

    backup = commands.add_parser("backup", help="copy a store while it is in use")
    backup.add_argument("file", type=named, metavar="FILE", help="the store's file")
    backup.add_argument("to", type=named, metavar="TO", help="the copy, a new file")
    backup.set_defaults(command=_backup)

    forget.add(commands)
    doctor.add(commands)

    local = commands.add_parser("local", help='the model that runs here, model="local"')
    verbs = local.add_subparsers(required=True, metavar="COMMAND")
    fetch = verbs.add_parser("fetch", help="get its weights; nothing is done when they are there")
    fetch.set_defaults(command=_fetch)

    demo = commands.add_parser("demo", help="a conversation that survives kill -9, in a minute")
    demo.add_argument(
        "--store", type=named_file, metavar="PATH", help="keep the conversation in this file"
    )
    demo.add_argument("--keep", action="store_true", help="keep the temporary file")
    demo.set_defaults(command=_demo)
    return parser


def _add_files(commands: _Commands) -> None:
    """Add the commands that take sessions out of a store or into one."""
    export = commands.add_parser("export", help="write a session to a file")
    export.add_argument("session", metavar="SESSION", help="the session's id")
    export.add_argument(
        "file",
        type=named,
        metavar="FILE",
        help=".jsonl (without loss), .md, .html, .json or .parquet; an earlier one is replaced",
    )
    export.add_argument("--at", metavar="ENTRY", help="only the path to this entry: id or number")
    export.add_argument("--store", type=named, metavar="STORE", help="the store's file")
    export.add_argument("--format", metavar="FORMAT", help="by default what FILE's suffix says")
    export.set_defaults(command=_export)

    load = commands.add_parser("import", help="add the sessions of exported files to a store")
    load.add_argument(
        "file", type=named, metavar="FILE", nargs="+", help="files, a folder or a .zip"
    )
    load.add_argument(
        "--store", type=named, metavar="STORE", help="the store's file, made when missing"
    )
    load.add_argument("--format", metavar="FORMAT", help="by default what the file looks like")
    load.add_argument(
        "--hidden",
        choices=("meta", "skip"),
        default="meta",
        help="what the source does not show: keep it out of sight, or leave it out",
    )
    load.set_defaults(command=_import)

    copy = commands.add_parser("copy", help="copy the sessions of a store to another")
    copy.add_argument("source", type=named, metavar="A", help="a store's file, or a .jsonl")
    copy.add_argument("target", type=named, metavar="B", help="likewise, made when missing")
    copy.add_argument("--prefix", metavar="P", default="", help="before the ids of the copies")
    copy.add_argument(
        "--session", metavar="SESSION", action="append", help="only this one; may come again"
    )
    copy.set_defaults(command=_copy)


# -- commands ----------------------------------------------------------------------------------


def _show(arguments: argparse.Namespace) -> int:
    from nbdurable.stores import release_store
    from nbdurable.terminal import render_tree

    if arguments.store is None and Path(arguments.session).is_file():
        path = shown(arguments.session)
        raise StoreError(f"file {path} was given alone; give a session of it too, see nbdurable ls")
    store = existing_store(arguments.store)
    try:
        check_session(store, arguments.session)
        entries = store.load_entries(arguments.session)
        leaf_id = position(entries, store.load_moves(arguments.session))
        annotations = Annotations(store.load_annotations(arguments.session))
    finally:
        release_store(store)
    view = render_tree(
        entries,
        leaf_id,
        title=arguments.session,
        show_ids=arguments.ids,
        marks=annotations.marks(),
    )
    console().print(view)
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from nbdurable.formats import export
    from nbdurable.loaded import load, unload
    from nbdurable.stores import release_store

    store = existing_store(arguments.store)
    try:
        check_session(store, arguments.session)
        image = load(store, arguments.session)
        try:
            leaf_id = _entry_id(image, arguments.at)
            path = export(image, arguments.file, arguments.format, leaf_id=leaf_id)
        finally:
            unload(image, store)
    finally:
        release_store(store)
    print(f"session {shown(arguments.session)} is in {one_line(str(path), 1_000)}")
    return 0


def _entry_id(image: Loaded, given: str | None) -> str | None:
    if given is None:
        return None
    found = image.id_of(int(given)) if given.isdecimal() and len(given) < 20 else given
    return image.stored(found or given).id


def _import(arguments: argparse.Namespace) -> int:
    from nbdurable.formats import load

    report = load(
        arguments.file,
        store=arguments.store,
        format=arguments.format,
        hidden=arguments.hidden,
    )
    return _reported(report)


def _copy(arguments: argparse.Namespace) -> int:
    from nbdurable.formats.copying import copy

    report = copy(
        arguments.source,
        arguments.target,
        prefix=arguments.prefix,
        session_ids=arguments.session,
    )
    return _reported(report)


def _reported(report: ImportReport) -> int:
    print(report)
    return 1 if any(session.outcome == "refused" for session in report.sessions) else 0


def _check(arguments: argparse.Namespace) -> int:
    from nbdurable.stores.duckdb.checking import check

    report = check(existing_path(arguments.file))
    for finding in report.findings:
        print(f"{'damage' if finding.is_damage else 'note'}: {one_line(str(finding), 1_000)}")
    rows = ", ".join(f"{name} {number:,}" for name, number in report.counts.items() if number)
    verdict = "is sound" if report.is_sound else "is damaged"
    print(f"{one_line(report.path, 1_000)} {verdict}{f': {rows}' if rows else ''}")
    return 0 if report.is_sound else 1


def _repair(arguments: argparse.Namespace) -> int:
    from nbdurable.stores.duckdb import DuckDBStore
    from nbdurable.stores.duckdb.checking import check
    from nbdurable.stores.duckdb.repair import RepairNotice

    path = existing_path(arguments.file)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", RepairNotice)
        DuckDBStore(path).close()
    for warning in told:
        print(one_line(str(warning.message), 1_000))
    name, damage = one_line(path, 1_000), [each for each in check(path).findings if each.is_damage]
    if damage:
        print(f"{name} has damage that cannot be mended; go back to a backup ({damage[0]})")
    elif not told:
        print(f"{name} has no damage that can be mended; see nbdurable check")
    return int(bool(damage))


def _backup(arguments: argparse.Namespace) -> int:
    from nbdurable.stores.duckdb import DuckDBStore

    store = DuckDBStore(existing_path(arguments.file))
    try:
        path = store.backup(arguments.to)
    finally:
        store.close()
    print(f"{one_line(store.name, 1_000)} is copied to {one_line(str(path), 1_000)}")
    return 0


def _fetch(arguments: argparse.Namespace) -> int:
    from nbdurable.models.weights import fetch

    path = fetch()
    print(f"the local model's weights are at {path}")
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    from nbdurable.demo import run_demo

    return run_demo(arguments.store, keep=arguments.keep)


# -- helpers -----------------------------------------------------------------------------------


def _told(exc: Exception) -> str:
    if not isinstance(exc, OSError) or isinstance(exc, NbDurableError) or exc.filename is None:
        return str(exc)
    return f"file {shown(exc.filename)} cannot be used ({exc.strerror}); choose another path"


@contextmanager
def _noted(interrupts: list[int]) -> Iterator[None]:
    """Note that an interrupt came, whatever becomes of its exception on the way."""
    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or before in (signal.SIG_IGN, None):  # as for what a shell runs behind
        yield
        return

    def note(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    """Show a warning as an error is shown, without the place in the code that it comes from."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *rest: f"nbdurable: {one_line(str(message), 1_000)}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before


def _write_any_text() -> None:
    """Let a terminal that cannot show a character show a question mark instead."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before this process began
            setattr(sys, name, open(os.devnull, "w"))
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
