"""The data dictionary says what every column of every view means, as the schema has it."""

from __future__ import annotations

import pytest
from generate_dictionary import PAGE, page

from nbdurable.stores.duckdb import dictionary
from nbdurable.stores.duckdb.dictionary import ABOUT, data_dictionary
from nbdurable.stores.duckdb.views import VIEWS


def test_every_column_of_every_view_has_a_meaning() -> None:
    unsaid = [f"{column.view}.{column.name}" for column in data_dictionary() if not column.meaning]

    assert unsaid == []


def test_every_view_is_in_the_dictionary() -> None:
    assert {column.view for column in data_dictionary()} == {*VIEWS} == {*ABOUT}


@pytest.mark.parametrize("view", dictionary._OWN)
def test_no_meaning_is_told_of_a_column_that_is_not_there(view: str) -> None:
    columns = {column.name for column in data_dictionary() if column.view == view}

    assert {*dictionary._OWN[view]} - columns == set()


def test_a_meaning_is_one_sentence() -> None:
    odd = [c for c in data_dictionary() if not c.meaning.endswith(".") or "\n" in c.meaning]

    assert odd == []


def test_the_page_is_that_of_the_schema() -> None:
    assert PAGE.read_text("utf-8") == page(), "run python tests/generate_dictionary.py"
