# SPDX-License-Identifier: LGPL-3.0-or-later
"""Figures in documents are those of results/*/raw.json (bench/quote.py)."""
import collections
import json
import re

import pytest

import quote

STABLE = "S2/stable-write"
DOCUMENT = "a.md"


def raw_of(when, systems=("casync", "ceph"), factor=1):
    """Three rounds: casync 10 20 90, ceph 5 20 10."""
    values = {"casync": (10, 20, 90), "ceph": (5, 20, 10)}
    return {"when": when, "versions": f"of {when[:10]}",
            "scenarios": [{"name": "S2", "cases": [
                {"name": "stable-write", "show": ["per_s", "p99_us"]}]}],
            "runs": [{"scenario": "S2", "case": "stable-write",
                      "system": system, "round": number,
                      "figures": {"per_s": value * factor,
                                  "p99_us": value * 1000}}
                     for system in systems
                     for number, value in enumerate(values[system])]}


class Stored:
    """A tree with runs; visit(text, (place, figure, query)…)."""

    def __init__(self, top):
        self.top, self.table = top, top / quote.TABLE
        self.table.parent.mkdir()

    def add(self, name, raw):
        folder = self.top / "results" / name
        folder.mkdir(parents=True)
        (folder / "raw.json").write_text(json.dumps(raw))

    def visit(self, text, *entries, check=False):
        (self.top / DOCUMENT).write_text(text)
        self.table.write_text("# a comment\n\n" + "".join(
            f"{DOCUMENT}\t{place}\t{figure}\t{query}\n"
            for place, figure, query in entries))
        wrong = quote.visit(self.top, check)
        return (self.top / DOCUMENT).read_text(), wrong

    def entries(self):
        """The figures, as the table has them now."""
        return [one.figure for one in quote.entries(
            self.table.read_text().split("\n")).values()]


@pytest.fixture
def stored(tmp_path):
    one = Stored(tmp_path)
    one.add("one", raw_of("2026-01-01 10:00"))
    return one


def test_documents_have_figures():
    """Or `quote.py --check`, which lint runs, would be content with nothing."""
    table = (quote.TOP / quote.TABLE).read_text("utf-8").split("\n")
    of = collections.Counter(
        one.document for one in quote.entries(table).values())
    assert of["docs/performance.md"] > 50


def test_no_reader_stumbles_over_a_query():
    """The table has them, and no comment in a document."""
    for page in [quote.TOP / "README.md", *(quote.TOP / "docs").glob("*.md")]:
        assert not re.search(r"<!-- (?!Generated)", page.read_text("utf-8")), \
            page


@pytest.mark.parametrize("figure, words", [
    ("20 (10–90)", "casync"),
    ("20.0 (10.0–90.0)", "casync 1"),
    ("20", "casync median"),
    ("10", "casync least"),
    ("90", "casync most"),
    ("20.00 (10.00–90.00)", "casync p99_us"),
    ("10", "ceph p99_us 0 median"),
    ("2.00 (1.00–9.00)", "casync/ceph"),        # 2, 1, 9 in the rounds
    ("2.0", "casync/ceph median 1"),
])
def test_a_right_figure_stays_and_a_wrong_one_is_told(stored, figure, words):
    query = f"{STABLE} {words}"
    right = f"about\n| so | {figure} |\n"
    assert stored.visit(right, ("| so |", figure, query),
                        check=True) == (right, [])
    old = "7.5 (7.1–7.9)"
    wrong = f"about\n| so | {old} |\n"
    text, told = stored.visit(wrong, ("| so |", old, query), check=True)
    assert text == wrong and stored.entries() == [old]
    assert told == [f"{DOCUMENT}:2: {old} is {figure}: {query}"]
    assert stored.visit(wrong, ("| so |", old, query)) == (right, [])
    assert stored.entries() == [figure]
    assert stored.table.read_text().startswith("# a comment\n\n")


@pytest.mark.parametrize("query, said", [
    ("S3/stable-write casync", "no scenario S3"),
    ("S3 folder", "no scenario S3"),
    ("S2/read casync", "no case S2/read"),
    (f"{STABLE} fuse", "no system S2/stable-write/fuse"),
    (f"{STABLE} casync/fuse", "stable-write/fuse"),
    (f"{STABLE} casync mib_s", "no figure mib_s"),
    (f"{STABLE} casync colour", "no figure colour"),
    ("stable casync", "not a query"),
])
def test_what_a_run_lacks_is_named(stored, query, said):
    for check in (True, False):
        text, told = stored.visit("so 1\n", ("so", "1", query), check=check)
        assert text == "so 1\n" and stored.entries() == ["1"]
        assert len(told) == 1 and said in told[0]
        assert told[0].startswith(f"{DOCUMENT}:1: ")


@pytest.mark.parametrize("text, said", [
    ("no line 20\n", "0 times there: so"),
    ("so 20\nso 20\n", "2 times there: so"),
    ("so 21\n", "has not just 20: so"),
    ("so 20 and 20\n", "has not just 20: so"),
    ("so 1,020\n", "has not just 20: so"),
    ("so 20.5\n", "has not just 20: so"),
    ("so 10–20\n", "has not just 20: so"),
    ("so 20 (10–90)\n", "has not just 20: so"),
])
def test_a_line_has_its_figure_once(stored, text, said):
    entry = ("so", "20", f"{STABLE} casync median")
    for check in (True, False):
        after, told = stored.visit(text, entry, check=check)
        assert after == text and told == [f"{DOCUMENT}: {said}"]


def test_figures_of_one_line_stand_in_their_order(stored):
    first, second = f"{STABLE} casync median", f"{STABLE} ceph median"
    text, told = stored.visit("128 so 1 and 1\n", ("128 so", "1", first),
                              ("128 so", "1", second))
    assert (text, told) == ("128 so 20 and 10\n", [])
    assert stored.entries() == ["20", "10"]
    told = stored.visit("so 10 and 20\n", ("so", "20", first),
                        ("so", "10", second), check=True)[1]
    assert told == [f"{DOCUMENT}: has not just 20, 10: so"]


def test_the_newest_run_that_has_the_systems_answers(stored):
    """And gives its name and its versions."""
    stored.add("zero", raw_of("2025-12-31 10:00", factor=3))
    stored.add("two", raw_of("2026-01-02 10:00", ["casync"], factor=2))
    text, told = stored.visit(
        "so 20\nthus 7\n[that](../results/one/a)\n"
        "with of 2026-01-01, as well\n",
        ("so", "20", f"{STABLE} casync median"),
        ("thus", "7", f"{STABLE} casync/ceph median"),
        ("[that]", "one", "S2 folder"),
        ("with", "of 2026-01-01", "S2 versions"))
    assert not told
    assert text == ("so 40\nthus 2.00\n[that](../results/two/a)\n"
                    "with of 2026-01-02, as well\n")


def test_the_program_says_by_its_status_what_it_found(stored, monkeypatch):
    stored.visit("so 1\n", ("so", "1", f"{STABLE} casync median"), check=True)
    monkeypatch.setattr(quote, "TOP", stored.top)
    for words, status in (["--check"], 1), ([], 0), (["--check"], 0):
        monkeypatch.setattr("sys.argv", ["quote.py", *words])
        assert quote.main() == status
