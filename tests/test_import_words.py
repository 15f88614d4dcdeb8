"""What an import's report says to who reads it."""

from __future__ import annotations

from nbdurable.formats.report import ImportedSession, ImportReport, Oddity


def report(*sessions: ImportedSession) -> list[str]:
    made = ImportReport(path="x.json", format="chatgpt", store="s.duckdb", sessions=sessions)
    return str(made).splitlines()


def test_a_session_of_several_branches_says_so() -> None:
    _, line = report(ImportedSession(id="a", outcome="added", entries=9, leaves=3))

    assert line == "'a' added, 9 new entries on 3 branches"


def test_what_is_unchanged_is_counted_and_not_listed() -> None:
    same = [ImportedSession(id=f"s{n}", outcome="unchanged", entries=0, leaves=1) for n in range(5)]
    grown = ImportedSession(id="g", outcome="grown", entries=1, leaves=1)

    heading, *lines = report(*same, grown)

    assert "1 session grown, 5 sessions unchanged" in heading
    assert lines == ["'g' grown, 1 new entry"]


def test_what_is_refused_is_told_before_all_that_went_well() -> None:
    fine = [ImportedSession(id=f"s{n}", outcome="added", entries=1, leaves=1) for n in range(30)]
    bad = ImportedSession(id="bad", outcome="refused", entries=0, leaves=0)

    _, first, *_, last = report(*fine, bad)

    assert first == "'bad' refused, 0 new entries"
    assert last == "and 11 more sessions"


def test_a_page_keeps_sessions_what_is_odd_and_times_apart_and_texts_as_text() -> None:
    made = ImportReport(
        path="<b>x</b>",
        format="chatgpt",
        store="s",
        sessions=(ImportedSession(id="a", outcome="added", entries=1, leaves=1),),
        oddities=(Oddity(text="<script>odd</script>"),),
        times="in seconds",
    )

    html = made._repr_html_()

    assert "<li>&#x27;a&#x27; added, 1 new entry</li>" in html
    assert '<div class="nbd-note"><div>&lt;script&gt;odd&lt;/script&gt;</div></div>' in html
    assert '<div class="nbd-dim">times: in seconds</div>' in html
    assert "<b>&lt;b&gt;x" in html
