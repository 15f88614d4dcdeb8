"""The browser, the server and a kernel work together, so that other tests can rely on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from browser.jupyter import OpenNotebook

pytestmark = pytest.mark.browser


def test_a_widget_shows_in_a_notebook_and_answers(
    notebook: Callable[[Sequence[str]], OpenNotebook],
) -> None:
    book = notebook(
        [
            "import ipywidgets\nbutton = ipywidgets.Button(description='press')\n"
            "button.on_click(lambda _: setattr(button, 'description', 'pressed'))\nbutton"
        ]
    )

    book.run(0, until="button.jupyter-button")
    book.page.get_by_role("button", name="press").click()

    book.page.get_by_role("button", name="pressed").wait_for()
