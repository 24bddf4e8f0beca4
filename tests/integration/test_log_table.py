# SPDX-License-Identifier: LGPL-3.0-or-later
"""docs/runbook.md tells of every line that the plugin logs at EVENT or
above, with its level, and of no other."""
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CALL = re.compile(r"\bLog(Fatal|Major|Crit|Warn|Event)\s*\(\s*COMPONENT_\w+,")
WORDS = re.compile(r'\s*("(?:[^"\\]|\\.)*"|PRI\w+)')


def shown(literals):
    """A format string with … where values come."""
    text = "".join("\0" if part.startswith("PRI") else part[1:-1]
                   for part in literals)
    text = re.sub(r"%(?:\0|[-.*0-9]*(?:l|z)*[dusxci])", "…", text)
    assert "\0" not in text and "%" not in text, text
    return re.sub("…+", "…", text.replace('\\"', '"'))


def logged():
    """(level, line) of each call in the sources."""
    found = set()
    for path in sorted((ROOT / "FSAL_CEPH_ASYNC").rglob("*.[ch]")):
        text = path.read_text(encoding="utf-8")
        for call in CALL.finditer(text):
            literals, place = [], call.end()
            while word := WORDS.match(text, place):
                literals.append(word[1])
                place = word.end()
            assert literals, f"{path.name}: {call[0]}: no format string"
            found.add((call[1].upper(), shown(literals)))
    return found


def told():
    """(level, line) of each line in the table; a row has one or more."""
    text = (ROOT / "docs/runbook.md").read_text(encoding="utf-8")
    text = text.partition("\n## What the log says")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([A-Z]+) \| (`.+?`) \| [^|]+ \| [^|]+ \|$", text,
                      re.M)
    found = [(level, line) for level, cell in rows
             for line in cell[1:-1].split("`<br>`")]
    assert not [line for _, line in found if "`" in line]
    assert len(found) == len(set(found)), "twice in the table"
    return set(found)


def test_each_line_is_in_the_table():
    code, table = logged(), told()
    assert len(code) > 30
    assert not code - table, "not in the table"
    assert not table - code, "in the table alone"


def test_values_are_not_compared():
    assert shown(['"%s:%d: %s%.*s of %"', "PRIu32", '" s"']) == "…:…: … of … s"
