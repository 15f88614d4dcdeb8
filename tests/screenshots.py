"""Photograph the widgets in a real JupyterLab, light and dark.

``screenshots.py FOLDER [light|dark] [SCENE …]`` writes ``tree-light.png``, ``tree-dark.png`` and so
on there. ``picture_story.py`` is what they show.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from browser.jupyter import Lab, OpenNotebook, open_browser, run_lab
from browser.tree_view import TreeView

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

TESTS = Path(__file__).parent
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
HEIGHT = 1000
NARROW, USUAL, WIDE = 800, 1250, 1610
"""Widths of the page; a cell's output takes about 210 px less."""

OPEN = """import picture_story as story, nbdurable as nb
from nbdurable.errors import ModelError
chat = story.tell(f"{theme}.duckdb")"""
RUN = """question = "What would have caught this earlier?"
run = chat.run(question, model=story.growing(), show={show!r}, wait={wait})"""
DONE = """answer = story.one("openai/gpt-5-mini", story.FOUND, 688)
run = chat.run("Check the pool.", at=2, model=answer)"""
MATRIX = "chat.experiment('subject').compare()"
SESSIONS = """asked = {"pricing-faq": "Which plans allow SSO?", "release-notes": "Draft the notes.",
         "sql-review": "Is this join safe?"}
for name, question in asked.items():
    with nb.open(name, store=chat.store, model="openai/gpt-5-mini") as other:
        other.run(question, model=story.one("openai/gpt-5-mini", story.PATCH, 90), show=None)
nb.connect(chat.store)"""
EMPTY = "nb.open('new-idea', store=chat.store, model='openai/gpt-5-mini')"
ONE = """one = nb.open("one-note", store=chat.store, model="openai/gpt-5-mini")
one.append("A first thought, kept for later.")
one"""
LONG = """answers = 120 * ["An answer that is as long as answers are, and goes on for a while."]
long = nb.open("long", store=":memory:", model=story.model("openai/gpt-5-mini", *answers))
for n in range(60):
    long.run(f"Question {n}: " + "what then, and why? " * (n % 4), show=None)
    if n % 7 == 6:
        long.branch(2 * n - 3)
long"""


class Album:
    """Where pictures go, and the notebooks they are taken in."""

    def __init__(self, lab: Lab, browser: Browser, folder: Path, theme: str) -> None:
        self.lab = lab
        self.browser = browser
        self.folder = folder
        self.theme = theme

    @contextmanager
    def book(self, *cells: str, width: int = USUAL) -> Iterator[OpenNotebook]:
        """Open a notebook whose first cell tells the story; end its kernel afterwards."""
        first = OPEN.replace("{theme}", f"{self.theme}-{len(list(self.lab.folder.iterdir()))}")
        name = self.lab.write([first, *cells])
        context = self.browser.new_context(viewport={"width": width, "height": HEIGHT})
        book = OpenNotebook(self.lab, context.new_page(), name, "lab")
        book.page.keyboard.press("Control+b")  # the file list gives its room to the notebook
        try:
            book.run_and_wait(0)
            yield book
        finally:
            self.lab.end_kernel(name)
            context.close()

    def take(self, what: Locator, name: str) -> None:
        """Photograph an element, with the mouse away from it."""
        what.page.mouse.move(2, 2)
        what.page.wait_for_timeout(400)
        path = self.folder / f"{name}-{self.theme}.png"
        what.screenshot(path=path, animations="disabled", caret="hide")
        print(path)


# -- scenes ----------------------------------------------------------------------------------------


def tree(album: Album) -> None:
    """The tree: as it opens, at an answer with tools, at a failure, and its menus and forms."""
    with album.book("chat") as book:
        shown = TreeView(book.run(1, until=".nbd-row"))
        album.take(shown.root, "opened")
        shown.choose(8)
        shown.root.locator(".nbd-md table").wait_for()
        album.take(shown.root, "tree")
        shown.choose(5)
        album.take(shown.root, "tools")
        shown.choose(10)
        album.take(shown.root, "failed")
        for action in ("×n", "⋯"):
            shown.press(12, action)
            album.take(shown.root, f"form-{'sample' if action == '×n' else 'menu'}")
            book.page.keyboard.press("Escape")
        shown.press(12, "Edit")
        album.take(shown.root, "edit")
        book.page.keyboard.press("Escape")
        shown.rows.nth(3).hover()
        book.page.keyboard.press("?")
        album.take(shown.root, "keys")


def compare(album: Album) -> None:
    """Three answers side by side, pinned in the tree."""
    with album.book("chat") as book:
        shown = TreeView(book.run(1, until=".nbd-row"))
        for n in (14, 15, 16):
            shown.press(n, "Pin")
        album.take(shown.root, "pinned")
        shown.root.get_by_role("button", name="Compare (3)").click()
        shown.root.locator(".nbd-cmp-table").wait_for()
        album.take(shown.root, "compare")


def streaming(album: Album) -> None:
    """An answer as it grows, in the tree and in its cell."""
    with album.book("chat", RUN.format(show=None, wait=False), "run.cancel()") as book:
        shown = TreeView(book.run(1, until=".nbd-row"))
        book.run_and_wait(2)
        shown.root.locator(".nbd-live", has_text="before").wait_for()
        album.take(shown.root, "streaming")
        book.run_and_wait(3)
    with album.book(RUN.format(show="stream", wait=True), DONE) as book:
        output = book.run(1, until=".nbd-run")
        output.get_by_text("minutes before").wait_for()
        album.take(output, "run")
        output.get_by_role("button", name="Stop").click()
        output.locator("button").wait_for(state="detached")
        output = book.run_and_wait(2)
        album.take(book.cells.nth(2), "run-done")


def saved(album: Album) -> None:
    """What a saved notebook shows when its kernel is gone."""
    with album.book("chat", "nb.compare(chat[14], chat[15], chat[16])", MATRIX) as book:
        book.run(1, until=".nbd-row")
        for at, until in ((2, ".nbd-cmp-table"), (3, ".nbd-matrix-table")):
            book.run(at, until=until)
        book.save()
        album.lab.end_kernel(book.name)
        album.lab.trust(book.name)
        book.load()
        for at, name in ((1, "saved"), (2, "saved-compare"), (3, "saved-matrix")):
            album.take(book.cells.nth(at), name)


def lists(album: Album) -> None:
    """The sessions of a store, an experiment's cells, and sessions with little or much in them."""
    with album.book(SESSIONS, MATRIX, EMPTY, ONE, LONG) as book:
        album.take(book.run(1, until=".nbd-sess-row"), "sessions")
        album.take(book.run(2, until=".nbd-matrix-table"), "matrix")
        for at, name in ((3, "empty"), (4, "one"), (5, "long")):
            book.run(at, until=".nbd-session")
            album.take(book.cells.nth(at).locator(".nbd-session").first, name)


def widths(album: Album) -> None:
    """The tree in little and in much room."""
    for width in (NARROW, WIDE):
        with album.book("chat", width=width) as book:
            shown = TreeView(book.run(1, until=".nbd-row"))
            shown.choose(8)
            shown.root.locator(".nbd-md table").wait_for()
            album.take(shown.root, f"tree-{width - 190}")


def imported(album: Album) -> None:
    """What an import did: sessions, what was odd, and how times were read."""
    load = f"nb.load({str(TESTS / 'data' / 'chatgpt_export.json')!r}, store=':memory:')"
    with album.book(load) as book:
        album.take(book.run(1, until=".nbd-note"), "imported")


SCENES: tuple[Callable[[Album], None], ...] = (
    tree,
    compare,
    streaming,
    saved,
    lists,
    widths,
    imported,
)


def main(folder: Path, themes: list[str], scenes: list[str]) -> int:
    """Take all pictures, or those of some themes and scenes."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, open_browser() as browser:
        path = f"{TESTS}:{TESTS.parent}"
        with run_lab(Path(place) / "jupyter", PYTHONPATH=path) as lab:
            for theme in themes or THEMES:
                look = Path(lab.env["JUPYTERLAB_SETTINGS_DIR"]) / "@jupyterlab/apputils-extension"
                look.mkdir(parents=True, exist_ok=True)
                choice = json.dumps({"theme": THEMES[theme]})
                (look / "themes.jupyterlab-settings").write_text(choice, "utf-8")
                for scene in SCENES:
                    if not scenes or scene.__name__ in scenes:
                        scene(Album(lab, browser, folder, theme))
    return 0


if __name__ == "__main__":
    options = sys.argv[2:]
    sys.exit(
        main(
            Path(sys.argv[1]),
            [o for o in options if o in THEMES],
            [o for o in options if o not in THEMES],
        )
    )
