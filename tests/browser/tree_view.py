"""A session's tree in a page, as a person uses it: rows, buttons, forms."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page


class TreeView:
    """The tree that a cell shows."""

    def __init__(self, output: Locator) -> None:
        self.root = output.locator(".nbd-session").first
        self.root.wait_for()
        self.page: Page = output.page

    @property
    def rows(self) -> Locator:
        """The rows in sight."""
        return self.root.get_by_role("treeitem")

    def row(self, n: int) -> Locator:
        """The row of entry #n."""
        ordinal = self.page.locator(".nbd-ord", has_text=re.compile(rf"^{n}$"))
        return self.root.locator(".nbd-row").filter(has=ordinal)

    def choose(self, n: int) -> Locator:
        """Click a row; return it when its entry is shown beside the tree."""
        self.row(n).click(position={"x": 120, "y": 12})
        self.root.locator(f'.nbd-pane[aria-label="Entry #{n}"]').wait_for()
        return self.row(n)

    def press(self, n: int, action: str) -> None:
        """Press a button in the row of an entry."""
        self.choose(n).get_by_text(action, exact=True).click()

    def from_menu(self, n: int, action: str) -> None:
        """Choose an action from the menu of an entry."""
        self.press(n, "⋯")
        self.root.get_by_role("menuitem", name=action).first.click()

    def wait_for_entries(self, count: int, timeout_s: float = 60) -> None:
        """Wait until the session has so many entries."""
        facts = self.root.locator(".nbd-tree-facts")
        facts.get_by_text(f"{count} entries").wait_for(timeout=timeout_s * 1000)

    def wait_until_quiet(self, timeout_s: float = 60) -> None:
        """Wait until nothing runs."""
        live = self.root.locator(".nbd-row-live")
        live.first.wait_for(state="detached", timeout=timeout_s * 1000)

    def pane_action(self, action: str) -> None:
        """Press a button below the entry that is shown."""
        button = self.root.locator(".nbd-pane-acts").get_by_text(action, exact=True)
        button.focus()  # seen once the keyboard comes to it
        button.click()

    @property
    def last_growing_row(self) -> Locator:
        """The last answer that is being written or waits to be."""
        return self.root.locator(".nbd-row-live:not(.nbd-is-experiment)").last
