# SPDX-License-Identifier: LGPL-3.0-or-later
"""Figures in documents are those of results/*/raw.json (bench/quote.py)."""
import collections
import copy
import json
import re

import pytest

import quote

STABLE = "S2/stable-write"
DOCUMENT = "a.md"


def raw_of(when, systems=("casync", "ceph", "cephasync")):
    """Three rounds: casync 10 20 90, ceph 5 20 10, cephasync 10 5 30."""
    values = {"casync": (10, 20, 90), "ceph": (5, 20, 10),
              "cephasync": (10, 5, 30)}
    return {"when": when, "versions": f"of {when[:10]}",
            "scenarios": [{"name": "S2", "cases": [
                {"name": "stable-write", "show": ["per_s", "p99_us"]}]}],
            "runs": [{"scenario": "S2", "case": "stable-write",
                      "system": system, "round": number,
                      "figures": {"per_s": value, "p99_us": value * 1000}}
                     for system in systems
                     for number, value in enumerate(values[system])]}


@pytest.fixture
def stored(tmp_path):
    """A tree with the run "one"; visit(text, (place, figure, query)...)."""
    class Stored:
        top = tmp_path
        table = tmp_path / quote.TABLE

        @staticmethod
        def add(name, raw):
            folder = tmp_path / "results" / name
            folder.mkdir(parents=True)
            (folder / "raw.json").write_text(json.dumps(raw))

        def write(self, text, *entries, run="one"):
            self.table.parent.mkdir(exist_ok=True)
            (tmp_path / DOCUMENT).write_text(text)
            self.table.write_text("# a comment\n\n" + "".join(
                f"{DOCUMENT}\t{place}\t{figure}\t{run}\t{query}\n"
                for place, figure, query in entries))

        def visit(self, text, *entries, run="one", check=False):
            self.write(text, *entries, run=run)
            wrong = quote.visit(tmp_path, check)
            return (tmp_path / DOCUMENT).read_text(), wrong

        def entries(self):
            """(figure, run) of each, as the table has them now."""
            return [(one.figure, one.run) for one in
                    quote.entries(self.table.read_text().split("\n"))
                    .values()]
    one = Stored()
    one.add("one", raw_of("2026-01-01 10:00"))
    return one


def test_the_documents_say_what_the_results_say():
    if not (quote.TOP / "results").exists():
        pytest.skip("no results/: this is a source tarball")
    assert quote.Results(quote.TOP / "results").raws, \
        "no results/*/raw.json in this tree"
    wrong = quote.visit(quote.TOP, check=True)
    assert not wrong, "\n".join(wrong)


def test_documents_have_figures():
    """Or the test above would be content with nothing."""
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
    ("1.00 (1.00–3.00)", "casync/better(ceph,cephasync)"),   # 1, 1, 3
])
def test_a_right_figure_stays_and_a_wrong_one_is_told(stored, figure, words):
    query = f"{STABLE} {words}"
    right = f"about\n| so | {figure} |\n"
    assert stored.visit(right, ("| so |", figure, query),
                        check=True) == (right, [])
    old = "7.5 (7.1–7.9)"
    wrong = f"about\n| so | {old} |\n"
    text, told = stored.visit(wrong, ("| so |", old, query), check=True)
    assert text == wrong and stored.entries() == [(old, "one")]
    assert told == [f"{DOCUMENT}:2: {old} is {figure} in results/one: "
                    f"{query}"]
    assert stored.visit(wrong, ("| so |", old, query)) == (right, [])
    assert stored.entries() == [(figure, "one")]
    assert stored.table.read_text().startswith("# a comment\n\n")


@pytest.mark.parametrize("query, said", [
    ("S3/stable-write casync", "no scenario S3"),
    ("S3 folder", "no scenario S3"),
    ("S2/read casync", "no case S2/read"),
    (f"{STABLE} fuse", "no system S2/stable-write/fuse"),
    (f"{STABLE} casync/fuse", "stable-write/fuse"),
    (f"{STABLE} casync/better(ceph,oc)", "stable-write/oc"),
    (f"{STABLE} casync mib_s", "no figure mib_s"),
    (f"{STABLE} casync colour", "no figure colour"),
    ("stable casync", "not a query"),
])
def test_what_a_run_lacks_is_named(stored, query, said):
    for check in (True, False):
        text, told = stored.visit("so 1\n", ("so", "1", query), check=check)
        assert text == "so 1\n" and stored.entries() == [("1", "one")]
        assert len(told) == 1 and said in told[0]
        assert told[0].startswith(f"{DOCUMENT}:1: ")


@pytest.mark.parametrize("text, said", [
    ("no line 20\n", "0 times there: so"),
    ("so 20\nso 20\n", "2 times there: so"),
    ("so 20 so\n", "2 times there: so"),
    ("so 21\n", "has not just 20: so"),
    ("so\n", "has not just 20: so"),
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
    assert stored.entries() == [("20", "one"), ("10", "one")]
    told = stored.visit("so 10 and 20\n", ("so", "20", first),
                        ("so", "10", second), check=True)[1]
    assert told == [f"{DOCUMENT}: has not just 20, 10: so"]


def test_a_run_that_is_not_stored(stored):
    entry = ("so", "1", f"{STABLE} casync median")
    told = stored.visit("so 1\n", entry, run="two", check=True)[1]
    assert len(told) == 1 and "no run results/two/raw.json" in told[0]
    told = stored.visit("so 1\n", entry, run="two kept")[1]
    assert len(told) == 1 and "no run results/two/raw.json" in told[0]
    # A run that was taken away gives place to one that has the query.
    assert stored.visit("so 1\n", entry, run="two") == ("so 20\n", [])
    assert stored.entries() == [("20", "one")]


def test_the_run_is_the_newest_that_has_the_systems(stored):
    figure = ("so", "20", f"{STABLE} casync median")
    ratio = ("thus", "2.00", f"{STABLE} casync/ceph median")
    text = "so 20\nthus 2.00\n"
    # Earlier, and later without FSAL_CEPH.
    stored.add("zero", raw_of("2025-12-31 10:00"))
    stored.add("two", raw_of("2026-01-02 10:00", ["casync"]))
    assert stored.visit(text, ratio, check=True) == (text, [])
    told = stored.visit(text, figure, ratio, check=True)[1]
    assert told == [f"{DOCUMENT}:1: results/two is newer than one: "
                    f"{figure[2]}"]
    assert stored.visit(text, figure, run="one kept",
                        check=True) == (text, [])
    assert stored.visit(text, figure, run="one kept") == (text, [])
    assert stored.entries() == [("20", "one kept")]
    assert stored.visit(text, figure, run="two", check=True) == (text, [])
    assert stored.visit(text, figure, ratio) == (text, [])
    assert stored.entries() == [("20", "two"), ("2.00", "one")]


def test_a_newer_run_gives_its_figures_and_its_name(stored):
    raw = copy.deepcopy(raw_of("2026-02-01 10:00"))
    for run in raw["runs"]:
        run["figures"]["per_s"] *= 2
    stored.add("later-2", raw)
    assert stored.visit(
        "so 20\n![so](../results/one/S2.svg)\nof 2026-01-01, so\n",
        ("so 2", "0", f"{STABLE} casync median"), check=True)[1]
    text, told = stored.visit(
        "thus 20\n![that](../results/one/S2.svg)\nwith of 2026-01-01, so\n",
        ("thus", "20", f"{STABLE} casync median"),
        ("![that]", "one", "S2 folder"),
        ("with", "of 2026-01-01", "S2 versions"))
    assert not told
    assert text == ("thus 40\n![that](../results/later-2/S2.svg)\n"
                    "with of 2026-02-01, so\n")
    assert stored.entries() == [
        ("40", "later-2"), ("later-2", "later-2"),
        ("of 2026-02-01", "later-2")]


def test_the_program_says_by_its_status_what_it_found(stored, monkeypatch,
                                                      capsys):
    stored.write("so 1\n", ("so", "1", f"{STABLE} casync median"))

    def run(*words):
        monkeypatch.setattr("sys.argv", [
            "quote.py", *words, "--top", str(stored.top)])
        return quote.main()
    assert run("--check") == 1
    assert f"{DOCUMENT}:1: 1 is 20 in results/one" in capsys.readouterr().out
    assert run() == 0 and run("--check") == 0
    assert capsys.readouterr().out == ""
    assert (stored.top / DOCUMENT).read_text() == "so 20\n"
