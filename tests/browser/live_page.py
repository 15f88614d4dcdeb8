"""A widget of this process in a page of the browser, without a notebook or a kernel.

The page's modules and the kernel's side are the real ones; only the host between them is made
here. So what needs no notebook is tested in a second, and tests see both ends.
"""

from __future__ import annotations

import json
import queue
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tree_page
from playwright.sync_api import Browser, Locator, Page

from nbdurable.notebook.bridge import Bridge

AXE = Path(__file__).parents[1] / "js" / "node_modules" / "axe-core" / "axe.min.js"
WAIT_MS = 20_000

# what would load, frame or run something; nothing of a widget does
HOSTILE = (
    "script, iframe, object, embed, link, base, meta, img:not([src^='data:image/']), "
    "video, audio, svg script, [onerror], [onload], [onclick], [onmouseover], [srcdoc], "
    "a[href^='javascript' i]"
)
_HOST = """
async ([esm, css, uid, twin]) => {
  const state = { uid }, listeners = [];
  const model = {
    get: (name) => state[name],
    on: (name, fn) => listeners.push([name, fn]),
    off: (name, fn) => {
      for (let at = listeners.length; at--;)
        if (listeners[at][0] === name && listeners[at][1] === fn) listeners.splice(at, 1);
    },
    send: (message) => { nbdSay(message); },
  };
  document.head.append(Object.assign(document.createElement("style"), { textContent: css }));
  document.body.insertAdjacentHTML("beforeend",
    `<div id=twin-${uid} data-nbd-twin=${uid}></div><div id=host-${uid}></div>`);
  document.getElementById(`twin-${uid}`).innerHTML = twin;
  const module = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
  const render = (await import(module)).default.render;
  window.endView = render({ model, el: document.getElementById(`host-${uid}`) });
  window.hearing = setInterval(async () => {
    for (const message of await nbdHear())
      for (const [name, fn] of [...listeners]) if (name === "msg:custom") fn(message);
  }, 10);
}
"""


class LivePage:
    """One page of a browser that shows one widget; `requests` and `errors` are what it did."""

    def __init__(
        self, browser: Browser, *, is_dark: bool = False, width: int | None = None
    ) -> None:
        size = {"width": (width or 1060) + 24, "height": 800}
        self.page: Page = browser.new_context(viewport=size).new_page()  # type: ignore[arg-type]
        self.page.set_default_timeout(WAIT_MS)
        self.requests: list[str] = []
        self.errors: list[str] = []
        self._said: queue.SimpleQueue[Any] = queue.SimpleQueue()
        names = (tree_page.DARK if is_dark else tree_page.LIGHT).items()
        theme = ";".join(f"{name}:{value}" for name, value in names)
        light, ground = ("false", "#111") if is_dark else ("true", "#fff")
        self.page.set_content(
            f'<!doctype html><html lang=en><meta charset="utf-8"><title>A widget</title><style>'
            f"body{{margin:12px;background:{ground};{theme}}}</style>"
            f'<body data-jp-theme-light="{light}">'
        )
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def show(self, widget: Bridge, twin: str = "") -> Locator:
        """Show a widget, and its static form as hidden as a notebook has it; return its root."""
        self._widget = widget
        widget.send = lambda message, buffers=None: self._said.put(json.dumps(message))
        self.page.expose_function("nbdSay", lambda m: widget._received(widget, m))
        self.page.expose_function("nbdHear", self._heard)
        state = widget.get_state(["_esm", "_css", "uid"])
        self.page.evaluate(_HOST, [str(state["_esm"]), str(state["_css"]), widget.uid, twin])
        root = self.page.locator(f"#host-{widget.uid} > .nbd-widget")
        root.wait_for()
        return root

    def put(self, html: str) -> Locator:
        """Put HTML into the page, as a notebook's output; return what holds it."""
        self.page.evaluate(
            "html => { const put = document.createElement('div'); put.id = 'put';"
            " put.innerHTML = html; document.body.append(put); }",
            html,
        )
        return self.page.locator("#put")

    def _heard(self) -> list[Any]:
        heard: list[Any] = []
        while not self._said.empty():
            heard.append(json.loads(self._said.get()))
        return heard

    # -- what a test asks ----------------------------------------------------------------------

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so in this process, while the page goes on."""
        for _ in range(WAIT_MS // 20):
            if is_so():
                return
            self.page.wait_for_timeout(20)
        raise AssertionError("it was not so in time")

    def violations(self, *parts: str) -> list[str]:
        """Return what axe-core finds in parts of the page."""
        self.page.evaluate(AXE.read_text("utf-8"))
        found = self.page.evaluate(
            "parts => axe.run({ include: parts.map((part) => [part]) })", list(parts)
        )["violations"]
        return [f"{rule['id']}: {node['html'][:200]}" for rule in found for node in rule["nodes"]]

    def cut_off(self, root: str) -> list[str]:
        """Return the classes of what reaches out of a part, where it cannot be scrolled to."""
        found: list[str] = self.page.evaluate(
            """selector => {
              const root = document.querySelector(selector), edge = root.getBoundingClientRect();
              const scrolls = (part) => {
                for (let at = part.parentElement; at && at !== root; at = at.parentElement)
                  if (/auto|scroll/.test(getComputedStyle(at).overflowX)) return true;
                return false;
              };
              return [...root.querySelectorAll("*")].filter((part) => {
                const { left, right, width } = part.getBoundingClientRect();
                const isOut = left < edge.left - 1 || right > edge.right + 1;
                return width > 1 && isOut && !part.closest(".nbd-hidden") && !scrolls(part);
              }).map((part) => `${part.tagName} ${part.className}`);
            }""",
            root,
        )
        return found

    def hostile(self) -> list[str]:
        """Return what must not be in any page of ours: elements, requests, what ran."""
        made: list[str] = self.page.evaluate(
            "([root, hostile]) => [...document.querySelectorAll(root)].flatMap((at) =>"
            " [...at.querySelectorAll(hostile)].map((one) => one.outerHTML.slice(0, 200)))",
            ["body > div", HOSTILE],
        )
        ran = [] if self.page.evaluate("window.__hit") is None else ["window.__hit"]
        asked = [url for url in self.requests if not url.startswith(("blob:", "data:"))]
        return [*made, *ran, *asked]

    def close(self) -> None:
        """Close the page; nothing was thrown in it."""
        self.page.context.close()
        assert not self.errors
