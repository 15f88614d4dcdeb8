"""Differences of two texts word by word: true to both, readable, bounded in work."""

from __future__ import annotations

import random

import pytest
from html_reader import TRAPS
from hypothesis import given
from hypothesis import strategies as st

from nbdurable.notebook.compare import worddiff
from nbdurable.notebook.compare.worddiff import Piece, change_counts, differences, words

TEXTS = st.text(alphabet="ab .\n漢é", max_size=60)


def of_base(pieces: list[Piece]) -> str:
    return "".join(text for kind, text in pieces if kind != "add")


def of_other(pieces: list[Piece]) -> str:
    return "".join(text for kind, text in pieces if kind != "del")


class TestDifferences:
    def test_kept_words_stand_between_what_went_and_what_came(self) -> None:
        pieces = differences("Your parcel ships today.", "Your gift ships on Friday.")

        assert pieces == [
            ("same", "Your "),
            ("del", "parcel"),
            ("add", "gift"),
            ("same", " ships "),
            ("del", "today"),
            ("add", "on Friday"),
            ("same", "."),
        ]

    def test_blanks_around_a_change_are_none(self) -> None:
        pieces = differences("one\n two  three four", "one\n 2  three 4 ")

        assert pieces == [
            ("same", "one\n "), ("del", "two"), ("add", "2"), ("same", "  three "),
            ("del", "four"), ("add", "4 "),
        ]  # fmt: skip

    def test_a_sign_amid_changes_is_no_likeness(self) -> None:
        pieces = differences("one, two", "three, four")

        assert pieces == [("del", "one, two"), ("add", "three, four")]

    def test_equal_texts_are_one_piece(self) -> None:
        assert differences("the same words", "the same words") == [("same", "the same words")]

    @given(TEXTS, TEXTS)
    def test_both_texts_can_be_read_from_the_pieces(self, base: str, other: str) -> None:
        pieces = differences(base, other)

        assert of_base(pieces) == base
        assert of_other(pieces) == other

    @given(TEXTS, TEXTS)
    def test_both_texts_can_be_read_when_long_ones_are_anchored(
        self, base: str, other: str
    ) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(worddiff, "STEPS", 0)
            pieces = differences(base, other)

        assert of_base(pieces) == base
        assert of_other(pieces) == other

    # case 43
    @pytest.mark.parametrize("name", TRAPS)
    def test_a_text_trap_survives_as_it_is(self, name: str) -> None:
        pieces = differences("before", TRAPS[name])

        assert of_other(pieces) == TRAPS[name]

    # case 50
    def test_edits_of_a_long_text_are_found_one_by_one(self) -> None:
        # 100,000 words as frequent as in prose, each fiftieth changed
        choose = random.Random(1)
        old = choose.choices(
            [f"w{i}" for i in range(20_000)], [1 / (i + 1) for i in range(20_000)], k=100_000
        )
        new = ["NEW" if at % 50 == 0 else word for at, word in enumerate(old)]

        pieces = differences(" ".join(old), " ".join(new))

        assert change_counts(pieces) == (2_000, 2_000)

    def test_what_work_is_left_for_counts_as_changed(self) -> None:
        base = " ".join(f"x{i} y{i}" for i in range(200))
        other = " ".join(f"x{i} z{i}" for i in range(200))

        assert change_counts(differences(base, other)) == (200, 200)
        added, removed = change_counts(differences(base, other, steps=2_000))
        assert 200 < added == removed < 400


class TestWords:
    def test_a_blank_belongs_to_the_word_after_it(self) -> None:
        assert words("Hi,  you\n") == ["Hi", ",", "  you", "\n"]

    def test_signs_written_without_blanks_are_words_each(self) -> None:
        assert words("漢字 かな") == ["漢", "字", " か", "な"]

    def test_joined_emoji_and_accents_are_not_torn(self) -> None:
        assert words("👩‍👩‍👧‍👦 cafe\u0301 don’t") == ["👩‍👩‍👧‍👦", " cafe\u0301", " don’t"]
