"""The list of behaviours reads every form of marker and fails on every kind of gap."""

from __future__ import annotations

import ast
from pathlib import Path

import behaviours
import pytest
from behaviour_titles import OPEN_PARTS, REQUIRED, TITLES
from behaviours import FileScan, Marked, Report, scan
from uncollected import uncollected


def markers_of(tmp_path: Path, source: str) -> dict[str, tuple[set[int], set[int]]]:
    path = tmp_path / "test_sample.py"
    path.write_text(source, "utf-8")
    return {
        test.where.removeprefix("s::"): (set(test.numbers), set(test.cases))
        for test in FileScan(path, "s").tests()
    }


def stray_in(source: str) -> list[str]:
    return list(uncollected(ast.parse(source)))


def report_with(*numbers: int, cases: tuple[int, ...] = ()) -> Report:
    return Report([Marked("t::test_a", frozenset(numbers), frozenset(cases))])


@pytest.mark.parametrize(
    ("marker", "numbers"),
    [
        ("# B17", {17}),
        ("# B17 B22", {17, 22}),
        ("# B36-B38", {36, 37, 38}),
        ("# pins B4, and (B9)", {4, 9}),
        ("# B2B is no number", set()),
    ],
)
def test_a_comment_above_a_test_names_its_behaviours(
    tmp_path: Path, marker: str, numbers: set[int]
) -> None:
    source = f"{marker}\ndef test_a():\n    pass\n"

    found = markers_of(tmp_path, source)

    assert found == {"test_a": (numbers, set())}


def test_decorators_may_stand_between_the_marker_and_the_test(tmp_path: Path) -> None:
    source = "# B17\n@mark\n@mark(\n    1,  # B18\n)\n# B19\nasync def test_a():\n    pass\n"

    found = markers_of(tmp_path, source)

    assert found["test_a"][0] == {17, 18, 19}


def test_a_marker_in_body_or_docstring_counts(tmp_path: Path) -> None:
    source = 'def test_a():\n    """Stored (B24)."""\n    x = 1  # B25\n    # case 23\n'

    found = markers_of(tmp_path, source)

    assert found["test_a"] == ({24, 25}, {23})


def test_several_cases_may_follow_one_word(tmp_path: Path) -> None:
    found = markers_of(tmp_path, "# cases 12 14, 16\ndef test_a():\n    pass\n")

    assert found["test_a"] == (set(), {12, 14, 16})


def test_a_marker_does_not_reach_the_next_test(tmp_path: Path) -> None:
    source = "# B1\n\ndef test_a():\n    pass  # B2\n\n# B3\ndef test_b():\n    pass\n"

    found = markers_of(tmp_path, source)

    assert found == {"test_a": ({2}, set()), "test_b": ({3}, set())}


def test_a_marker_of_a_class_holds_for_all_its_tests(tmp_path: Path) -> None:
    source = (
        "# B1\n@mark\nclass TestX:\n    '''Says B2.'''\n\n    # B3\n\n"
        "    # B4\n    def test_a(self):\n        pass\n\n    def test_b(self):\n        pass\n"
    )

    found = markers_of(tmp_path, source)

    assert found["TestX::test_a"][0] == {1, 2, 3, 4}
    assert found["TestX::test_b"][0] == {1, 2, 3}


def test_a_number_in_plain_text_is_no_marker(tmp_path: Path) -> None:
    found = markers_of(tmp_path, "def test_a():\n    text = 'B17 # B18'\n")

    assert found["test_a"] == (set(), set())


@pytest.mark.parametrize("name", ["conformance.py", "conformance/_runs.py"])
def test_the_contract_of_stores_is_scanned_beside_the_tests(tmp_path: Path, name: str) -> None:
    (tmp_path / "tests").mkdir()
    contract = tmp_path / "nbdurable" / "stores" / name
    contract.parent.mkdir(parents=True)
    contract.write_text("class StoreContract:\n    # B60\n    def test_a(self): ...\n", "utf-8")

    pins = scan(tmp_path).pins()

    assert pins == {60: [f"nbdurable/stores/{name}::StoreContract::test_a"]}


def test_a_required_behaviour_without_a_test_is_a_problem() -> None:
    report = report_with(*(REQUIRED - {17}))

    assert report.problems() == [f"B17 has no test: {TITLES[17]}"]


def test_all_required_behaviours_pinned_is_no_problem() -> None:
    assert report_with(*REQUIRED).problems() == []


def test_an_unknown_behaviour_is_a_problem() -> None:
    report = report_with(*REQUIRED, 71)

    assert report.problems() == ["t::test_a names B71, which is unknown"]


def test_an_unknown_case_is_a_problem() -> None:
    report = report_with(*REQUIRED, cases=(1, 63))

    assert report.problems() == ["t::test_a names case 63, which is unknown"]


def test_a_stray_function_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text("def allow_two():\n    pass\n", "utf-8")

    problems = scan(tmp_path).problems()

    assert problems[-1].startswith("tests/test_x.py:1: allow_two: no test by its name")


def test_the_script_fails_on_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tests").mkdir()
    monkeypatch.setattr(behaviours, "ROOT", tmp_path)

    code = behaviours.main([])

    assert code == 1
    assert f"behaviours: B1 has no test: {TITLES[1]}" in capsys.readouterr().err


def test_the_list_names_tests_and_open_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPEN_PARTS, 24, "the rest of it")

    lines = list(behaviours.listing(report_with(24), brief=False))

    at = lines.index(f"B24    1  {TITLES[24]}")
    assert lines[at + 1 : at + 3] == [f"           open: {OPEN_PARTS[24]}", "           t::test_a"]


def test_what_is_not_yet_required_is_listed_as_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(behaviours, "REQUIRED", REQUIRED - {24})

    lines = list(behaviours.listing(report_with(), brief=True))

    assert f"B24    0  {TITLES[24]} (later)" in lines


def test_every_behaviour_has_a_title_and_open_parts_are_required() -> None:
    assert list(TITLES) == list(range(1, 71))
    assert REQUIRED <= TITLES.keys()
    assert OPEN_PARTS.keys() <= REQUIRED


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def allow_two():\n    pass\n", "1: allow_two: no test by its name"),
        ("class Stores:\n    def test_a(self): ...\n", "1: Stores: its name does not start"),
        (
            "class TestX:\n    def __init__(self): ...\n    def test_a(self): ...\n",
            "1: TestX: a class with __init__",
        ),
        (
            "class TestX:\n    def test_a(self): ...\n    def check_b(self): ...\n",
            "3: check_b: no test by its name",
        ),
        (
            "def test_a():\n    def test_b():\n        pass\n",
            "2: test_b: a test inside a function",
        ),
        ("def test_a(): ...\ndef test_a(): ...\n", "1: test_a: defined again below"),
    ],
)
def test_a_function_that_never_runs_is_found(source: str, why: str) -> None:
    (found,) = stray_in(source)

    assert found.startswith(why)


@pytest.mark.parametrize(
    "source",
    [
        "def helper(): ...\ndef test_a():\n    helper()\n",
        "@pytest.fixture\ndef store(): ...\n",
        "def pytest_generate_tests(metafunc): ...\n",
        "def child(): ...\nSCRIPT = 'child()'\n",
        "class Base:\n    def test_a(self): ...\nclass TestX(Base): ...\n",
        "class TestX(StoreContract):\n    def make_store(self): ...\n    def test_a(self): ...\n",
        "class TestX:\n    def setup_method(self): ...\n    def test_a(self): ...\n",
    ],
)
def test_helpers_fixtures_and_bases_are_left_alone(source: str) -> None:
    assert stray_in(source) == []
