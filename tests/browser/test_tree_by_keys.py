"""All that can be done in a session's tree, done by keys alone: real page, real session."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nbdurable as nb
from nbdurable.entries import CompactionEntry
from nbdurable.notebook import assets
from nbdurable.testing import ScriptedModel

if TYPE_CHECKING:
    from browser.live_page import LivePage
    from playwright.sync_api import Locator

pytestmark = pytest.mark.browser


DRAWN = "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"


class Hands:
    """A person with a keyboard before a session's tree; it has no mouse."""

    def __init__(self, page: LivePage, chat: nb.Session) -> None:
        self.chat = chat
        self.live = page
        self.root: Locator = page.show(chat.widget())
        self.keys = page.page.keyboard
        self.root.get_by_role("treeitem").first.wait_for()
        # from the top of the page, as one comes to it
        for _ in range(12):
            self.keys.press("Tab")
            if self.root.locator("[role=tree]:focus").count():
                return
        raise AssertionError("Tab does not lead to the tree")

    def go_to(self, n: int) -> Hands:
        """Walk to the row of an entry."""
        self.press("Home")
        for _ in range(30):
            if self.chosen() == str(n):
                return self
            self.press("ArrowDown")
        raise AssertionError(f"no row of #{n} was come to")

    def chosen(self) -> str:
        """Return the ordinal of the chosen row."""
        chosen = self.root.locator(".nbd-row[aria-selected=true] .nbd-ord")
        chosen.wait_for()
        return chosen.inner_text()

    def press(self, *keys: str) -> Hands:
        """Press keys one after another, each when what the one before did is drawn."""
        for key in keys:
            self.keys.press(key)
            self.live.page.evaluate(DRAWN)
        return self

    def form(self, key: str) -> Hands:
        """Open a form by its key; the focus is in it."""
        self.keys.press(key)
        self.root.locator(":is([role=dialog], [role=menu], .nbd-editor) :focus").wait_for()
        return self

    def write(self, text: str) -> Hands:
        """Write over what is in the field that has the focus."""
        self.press("Control+a")
        self.keys.type(text)
        return self

    def hears(self, text: str) -> None:
        """Wait until the line that screen readers read says a text."""
        self.root.locator(".nbd-tree-status", has_text=text).wait_for()

    def is_back(self) -> bool:
        """Whether the tree has the focus."""
        return self.root.locator("[role=tree]:focus").count() == 1


def saved(*more: Any) -> nb.Session:
    """Return a session: a question with two answers, and a second turn."""
    model = ScriptedModel("One.", "Two.", "Three.", *more, "Later.")
    chat = nb.open("s", store=":memory:", model=model)
    chat.run("First?", show=None)
    chat.rerun(2, show=None)
    chat.run("Second?", show=None)
    return chat


@pytest.fixture
def hands(live: Callable[..., LivePage]) -> Iterator[Hands]:
    with saved() as chat:
        yield Hands(live(), chat)


def has(count: int) -> Callable[[nb.Session], bool]:
    return lambda chat: len(chat.entries()) == count and not chat.image.foreground


def marked(name: str) -> Callable[[nb.Session], bool]:
    return lambda chat: [one.name for one in chat.annotations()] == [name]


def last_temperature(chat: nb.Session) -> object:
    reply = chat.entries(nb.MessageEntry)[-1].message.reply
    return reply.params.get("temperature") if reply else None


Done = Callable[[nb.Session], object]
# an action's name: what the hands do, and what is so in the session then
DEEDS: dict[str, tuple[Callable[[Hands], object], Done]] = {
    "branch": (lambda at: at.go_to(2).press("b"), lambda chat: chat.leaf_id == chat[2].id),
    "rerun": (lambda at: at.go_to(2).press("r"), has(6)),
    "edit": (lambda at: at.go_to(4).form("e").write("Third?").press("Control+Enter"), has(7)),
    "sample": (
        lambda at: at.go_to(5).form("s").write("2").press("Control+Enter"),
        lambda chat: len(chat.entries()) == 7,
    ),
    "rerun_with": (
        lambda at: at.go_to(5).form("w").press("Tab").write("0.7").press("Control+Enter"),
        lambda chat: last_temperature(chat) == 0.7,
    ),
    "continue": (lambda at: at.go_to(5).press("c").write("Go.").press("Control+Enter"), has(7)),
    "label": (
        lambda at: at.go_to(2).form("l").write("mine").press("Enter"),
        marked("label"),
    ),
    "rate": (lambda at: at.go_to(2).form("t").write("4").press("Enter"), marked("rating")),
    "prefer": (lambda at: at.go_to(2).press("f"), marked("prefer")),
    "compact": (
        lambda at: at.go_to(5).form("o").press("Control+Enter"),
        lambda chat: chat.entries(CompactionEntry),
    ),
    "menu": (
        lambda at: at.go_to(2).form("m").press("ArrowDown", "ArrowUp", "Enter"),
        lambda chat: chat.leaf_id == chat[2].id,
    ),
}
# those that have a test of their own below
OTHERS = {"pin", "compare", "goon", "cancel", "copy_id", "copy_code", "help"}


# B29
@pytest.mark.parametrize("name", DEEDS)
def test_an_action_is_done_by_its_key(hands: Hands, name: str) -> None:
    do, is_done = DEEDS[name]

    do(hands)

    hands.live.until(lambda: bool(is_done(hands.chat)))


# B29
def test_every_action_that_is_listed_is_done_by_keys_here() -> None:
    source = Path(assets.JS, "pane", "actions.js").read_text("utf-8")

    listed = re.findall(r'^  \{ name: "(\w+)"', source, re.MULTILINE)

    assert sorted(listed) == sorted([*DEEDS, *OTHERS])


# B29
def test_two_answers_are_pinned_compared_and_one_is_preferred_by_keys(hands: Hands) -> None:
    hands.go_to(2).press("p").go_to(3).press("p", "v")
    comparison = hands.root.locator(".nbd-cmp")
    comparison.wait_for()

    hands.press("b")
    comparison.locator("[aria-pressed=true]", has_text="Blind").wait_for()
    hands.press("1")
    hands.live.until(lambda: marked("prefer")(hands.chat))
    hands.press("d", "s", "Escape")

    comparison.wait_for(state="detached")
    assert hands.is_back()


# B22
def test_a_run_goes_on_without_input_by_a_key(hands: Hands) -> None:
    hands.chat.append(nb.user("Unanswered?"))
    hands.root.get_by_text("Unanswered?").first.wait_for()

    hands.go_to(6).press("g")

    hands.live.until(lambda: has(7)(hands.chat))


# B22
def test_what_runs_is_cancelled_by_a_key(live: Callable[..., LivePage]) -> None:
    held = threading.Event()
    with saved(["Begun", held]) as chat:
        hands = Hands(live(), chat)
        run = chat.run("Wait.", wait=False)
        hands.root.locator(".nbd-row-live", has_text="Begun").wait_for()

        hands.press("x")

        hands.live.until(lambda: run.is_done)
        assert run.outcome == "aborted"
        held.set()


def test_id_and_code_are_copied_by_keys(hands: Hands) -> None:
    hands.go_to(2).press("i")
    hands.hears("copied the id of #2")

    hands.form("k").press("Enter")
    hands.hears("copied")

    assert "rerun(2)" in hands.root.locator(".nbd-tree-status").inner_text()
    assert hands.is_back()


def test_the_keys_are_listed_by_a_key_and_escape_leads_back(hands: Hands) -> None:
    hands.form("?")
    listed = hands.root.get_by_role("dialog").locator("kbd").all_inner_texts()

    hands.press("Escape")
    hands.root.get_by_role("dialog").wait_for(state="detached")

    assert {*"brespmwcgxvltfiko?z/", "Home", "Esc"} <= set(listed)
    assert hands.is_back()


# B29
def test_a_text_is_found_by_keys_and_escape_shows_everything(hands: Hands) -> None:
    hands.press("/")
    hands.keys.type("two.")
    hands.press("Enter")
    hands.hears("1 entry found")
    assert hands.chosen() == "3"

    hands.press("Escape")

    hands.root.get_by_role("treeitem").nth(4).wait_for()
    assert hands.is_back()


def test_a_filter_is_chosen_by_keys(hands: Hands) -> None:
    hands.press("/", "Tab")
    assert hands.root.locator("select:focus").count() == 1

    hands.keys.type("User")

    hands.root.locator(".nbd-row", has_text="Three.").wait_for(state="detached")
    assert hands.root.locator(".nbd-ord").all_inner_texts() == ["1", "4"]


def test_rows_are_zoomed_folded_and_gone_between_by_keys(hands: Hands) -> None:
    rows = hands.root.get_by_role("treeitem")
    hands.go_to(3).press("z")
    hands.root.get_by_text("Below #3").wait_for()
    assert rows.count() == 3
    hands.press("z", "[")
    assert hands.chosen() == "2"
    hands.press("]")
    assert hands.chosen() == "3"

    hands.go_to(2)
    unfolded = hands.root.locator(".nbd-row[aria-expanded=true]")
    count = rows.count()
    hands.go_to(int(unfolded.locator(".nbd-ord").first.inner_text())).press("ArrowLeft")
    assert rows.count() < count

    hands.press("ArrowRight")

    assert rows.count() == count


# B29
def test_all_controls_are_come_to_by_tab(hands: Hands) -> None:
    """Whatever can be pressed or written in is a stop of Tab, or has its key (`aria-hidden`)."""
    every = hands.root.locator(
        ":is(button, input, select, textarea, summary, a[href]):visible"
        ":not([disabled], [role=tab], [aria-hidden=true], [aria-hidden=true] *)"
    )
    wanted = set(every.evaluate_all("all => all.map((one) => one.outerHTML)"))
    come_to: set[str] = set()
    hands.live.page.evaluate("document.activeElement.blur()")

    for _ in range(60):
        hands.press("Tab")
        come_to.add(hands.live.page.evaluate("document.activeElement.outerHTML"))

    assert wanted - come_to == set()


def test_the_tabs_of_an_entry_are_gone_between_by_arrows(hands: Hands) -> None:
    hands.go_to(3).press("Tab")
    for _ in range(30):
        if hands.root.locator("[role=tab]:focus").count():
            break
        hands.press("Tab")

    hands.press("ArrowRight")
    hands.root.locator("[role=tab][aria-selected=true]:focus", has_text="Request").wait_for()
    hands.press("ArrowRight")

    hands.root.locator(".nbd-pane-body", has_text='"created_at"').wait_for()
