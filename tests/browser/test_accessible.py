"""Every surface by the rules of axe-core: light, dark and narrow; nothing is cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

import nbdurable as nb
from nbdurable.notebook.run.view import RunView
from nbdurable.notebook.sessions import SessionsWidget
from nbdurable.stores.memory import MemoryStore
from nbdurable.testing import ScriptedModel

if TYPE_CHECKING:
    from browser.live_page import LivePage

pytestmark = pytest.mark.browser

LOOKS: dict[str, dict[str, Any]] = {
    "light": {},
    "dark": {"is_dark": True},
    "narrow": {"width": 600},
}


@pytest.fixture(scope="module")
def store() -> Iterator[MemoryStore]:
    yield MemoryStore()


@pytest.fixture(scope="module")
def chat(store: MemoryStore) -> Iterator[nb.Session]:
    long = "We ship **today**, by the fastest carrier that there is for such a parcel. " * 3
    model = ScriptedModel(long, "Not today.\n\n```python\nprint('x' * 80)\n```", "Yes.", "No.")
    with nb.open("support", store=store, model=model, system="Be kind.") as chat:
        first = chat.run("Where is order 1234, which I paid for weeks ago?", show=None)
        second = chat.rerun(first, show=None)
        chat.label(second.leaf_id, "chosen one")
        chat.rate(2, 4)
        chat.grid("Will it come?", temperature=[0, 1], n=2, name="wording", show=None)
        yield chat


@pytest.fixture(params=LOOKS)
def page(live: Callable[..., LivePage], request: pytest.FixtureRequest) -> LivePage:
    made: LivePage = live(**LOOKS[request.param])
    return made


# B29 case 48
def test_a_comparison(page: LivePage, chat: nb.Session) -> None:
    root = page.show(nb.compare(2, 3, session=chat).widget())
    root.locator(".nbd-cmp-said").first.wait_for()
    root.get_by_role("button", name="Keys").click()
    root.locator("summary").click()

    assert page.violations(".nbd-widget") == []
    assert page.cut_off(".nbd-widget") == []


# B29 case 48
def test_a_matrix_and_what_is_compared_below_it(page: LivePage, chat: nb.Session) -> None:
    root = page.show(chat.experiment("wording").compare().widget())
    for at in (0, 1):
        root.locator("button[data-i]").nth(at).click()
    root.get_by_role("button", name="Compare (2)").click()
    root.locator(".nbd-cmp-said").first.wait_for()

    assert page.violations(".nbd-widget") == []
    assert page.cut_off(".nbd-widget") == []


# B29 case 48
def test_the_list_of_sessions(page: LivePage, chat: nb.Session, store: MemoryStore) -> None:
    root = page.show(SessionsWidget(nb.connect(store)))
    root.locator(".nbd-sess-space .nbd-sess-row").first.wait_for()

    assert page.violations(".nbd-widget") == []
    assert page.cut_off(".nbd-widget") == []
    heights = root.locator(".nbd-sess-row").evaluate_all("all => all.map((r) => r.offsetHeight)")
    assert set(heights) == {26}


# B29 case 48
def test_a_tree_with_its_composer_and_a_comparison_over_it(
    page: LivePage, chat: nb.Session
) -> None:
    root = page.show(chat.widget())
    root.get_by_label("Message").fill("More?")

    assert page.violations(".nbd-widget") == []
    assert page.cut_off(".nbd-widget") == []
    heights = root.locator(".nbd-row").evaluate_all("all => all.map((r) => r.offsetHeight)")
    assert set(heights) == {26}
    root.get_by_role("tree").focus()
    for key in ("Home", "ArrowDown", "p", "ArrowDown", "p", "v"):
        page.page.keyboard.press(key)
    root.locator(".nbd-cmp-said").first.wait_for()
    assert page.violations(".nbd-widget") == []


# B29 case 42 case 48
def test_what_stands_in_a_saved_notebook(page: LivePage, chat: nb.Session) -> None:
    page.put(
        chat.widget().html()
        + nb.compare(2, 3, session=chat).html()
        + chat.experiment("wording").compare().html()
        + nb.connect(chat.image.store)._repr_html_()
        + chat.runs()[0]._repr_mimebundle_()["text/html"]
    )

    assert page.violations("#put") == []
    assert page.cut_off("#put") == []


# B15 case 48
def test_a_run_that_goes_on(page: LivePage, chat: nb.Session) -> None:
    view = RunView(lambda: None)
    page.show(view)
    view.look(chat.runs()[0]._repr_mimebundle_()["text/html"], "running … 1.0 s")
    page.page.get_by_text("fastest").first.wait_for()

    assert page.violations(".nbd-widget") == []
    assert page.cut_off(".nbd-widget") == []
