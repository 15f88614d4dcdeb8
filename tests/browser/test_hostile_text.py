"""Hostile text in every place of every surface: no element, no request, nothing runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import pytest
from browser.hostile import NAME, TEXT, hostile_session

import nbdurable as nb
from nbdurable.notebook.compare.matrix import Matrix
from nbdurable.notebook.run.view import RunView
from nbdurable.notebook.sessions import SessionsWidget
from nbdurable.stores.memory import MemoryStore

if TYPE_CHECKING:
    from browser.live_page import LivePage
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser


class Said(NamedTuple):
    chat: nb.Session
    experiment: nb.Experiment
    store: MemoryStore


@pytest.fixture(scope="module")
def said() -> Iterator[Said]:
    store = MemoryStore()
    chat, experiment = hostile_session(store)
    yield Said(chat, experiment, store)
    chat.close()


@pytest.fixture
def page(live: Callable[..., LivePage]) -> LivePage:
    made: LivePage = live()
    return made


# case 43
def test_a_tree_and_every_entry_in_it(page: LivePage, said: Said) -> None:
    root = page.show(said.chat.widget(), twin=said.chat.widget().html())
    keys = page.page.keyboard
    root.get_by_role("tree").focus()
    keys.press("Home")
    for n in range(1, len(said.chat.entries()) + 1):
        keys.press("ArrowDown")
        keys.press("ArrowRight")
        if n in (2, 4):
            for tab in ("JSON", "Request", "Text"):
                root.get_by_role("tab", name=tab).click()
                page.page.wait_for_timeout(50)
        for fold in root.locator(".nbd-pane details:not([open]) > summary").all():
            fold.click()
        assert page.hostile() == []


# case 43
def test_forms_menus_and_the_find_field_of_a_tree(page: LivePage, said: Said) -> None:
    root = page.show(said.chat.widget())
    root.get_by_role("tree").focus()
    page.page.keyboard.press("Home")
    page.page.keyboard.press("ArrowDown")

    for key in "wsltmke":
        root.get_by_role("tree").focus()
        page.page.keyboard.press(key)
        root.locator(".nbd-float, .nbd-editor").first.wait_for()
        assert page.hostile() == []
        page.page.keyboard.press("Escape")
    root.get_by_label("Message").fill(TEXT)
    root.get_by_role("searchbox").fill("window.__hit")
    root.get_by_text("found").first.wait_for()

    assert page.hostile() == []


# case 43
@pytest.mark.parametrize("blind", [False, True])
def test_a_comparison_and_its_static_form(page: LivePage, said: Said, *, blind: bool) -> None:
    answers = [n.n for n in said.chat.entries() if getattr(n, "role", "") == "assistant"]
    comparison = nb.compare(*answers[:4], session=said.chat, blind=blind)

    root = page.show(comparison.widget(), twin=comparison.html())
    root.locator(".nbd-cmp-said").first.wait_for()
    root.get_by_role("button", name="Diff").click()

    assert page.hostile() == []
    page.put(comparison._repr_html_())
    assert page.hostile() == []


# case 43
def test_a_matrix_its_comparison_and_its_static_form(page: LivePage, said: Said) -> None:
    matrix = said.experiment.compare()
    assert isinstance(matrix, Matrix)

    root = page.show(matrix.widget(), twin=matrix.html())
    for at in (0, 1):
        root.locator("button[data-i]").nth(at).click()
    root.get_by_role("button", name="Compare (2)").click()
    root.locator(".nbd-cmp-said").first.wait_for()

    assert NAME[:20] in root.inner_text()
    assert page.hostile() == []
    page.put(matrix._repr_html_())
    assert page.hostile() == []


# case 43
def test_the_list_of_sessions_and_its_static_form(page: LivePage, said: Said) -> None:
    library = nb.connect(said.store)
    widget = SessionsWidget(library)

    root = page.show(widget, twin=widget.html())
    root.get_by_role("searchbox").fill("__hit")
    root.locator(".nbd-sess-space .nbd-sess-row").first.click()
    page.until(lambda: widget.session is not None)

    assert page.hostile() == []
    page.put(library._repr_html_())
    assert page.hostile() == []
    widget.close()


# case 43
def test_a_run_while_it_goes_on_and_when_it_has_ended(page: LivePage, said: Said) -> None:
    runs = [run for run in said.chat.runs() if run.text or run.error]
    view = RunView(lambda: None)

    root = page.show(view)
    for run in runs:
        view.look(run._repr_mimebundle_()["text/html"], NAME)
    root.get_by_text("Look:").first.wait_for()

    assert page.hostile() == []
    for run in runs:
        page.put(run._repr_mimebundle_()["text/html"])
    assert page.hostile() == []


# case 43
@pytest.mark.parametrize("name", ["df", "runs_df", "branches_df", "tools_df"])
def test_a_frame_shown_in_a_notebook(page: LivePage, said: Said, name: str) -> None:
    frame = getattr(said.chat, name)()

    page.put(frame._repr_html_())

    assert page.hostile() == []


# case 43
def test_sessions_and_experiments_shown_without_a_kernel(page: LivePage, said: Said) -> None:
    for shown in (said.chat, said.experiment, said.experiment.df(), nb.connect(said.store).df()):
        page.put(shown._repr_html_())

    assert page.hostile() == []


def test_the_traps_would_work_where_nothing_holds_them(page: LivePage) -> None:
    page.put(TEXT)

    def has_run(inner: Page) -> bool:
        return bool(inner.evaluate("window.__hit"))

    page.until(lambda: has_run(page.page))
    assert len(page.hostile()) > 4
    page.errors.clear()
