# SPDX-License-Identifier: LGPL-3.0-or-later
"""docs/comparison.md names tests: each must exist, and each key have a row."""
import re
from fnmatch import fnmatchcase
from pathlib import Path

import all_cases  # noqa: F401  (registers the cases)
import ganesha_5_9
from registry import CASES

TOP = Path(__file__).resolve().parents[2]
TEXT = (TOP / "docs/comparison.md").read_text(encoding="utf-8")
# Without the text around the tables of features, and bugs from the field.
FEATURES = re.search(
    r"^## By Ganesha's version$.*?(?=^## Bugs from the field$)",
    TEXT, re.M | re.S)[0]


def names_in(file):
    if file.startswith("case_"):
        return [name for name, case in CASES.items() if case.module == file]
    if file.endswith(".py"):
        text = (TOP / "tests/integration" / file).read_text(encoding="utf-8")
        return re.findall(r"^def (test_\w+)", text, re.M)
    text = "".join(path.read_text(encoding="utf-8") for path in
                   (TOP / "tests/unit").glob(f"*/{file}"))
    # TEST(name), the macros that a file makes of it, and what they register.
    return re.findall(r"^(?:static void |[A-Z_]+\()(\w+)\b", text, re.M)


def test_each_test_that_is_named_exists():
    named = re.findall(r"`((?:case|test)_\w+(?:\.\w+)?)::([\w*]+)`",
                       FEATURES)
    assert len(named) > 150
    missing = [f"{file}::{name}" for file, name in named
               if not any(fnmatchcase(there, name)
                          for there in names_in(file))]
    assert not missing, missing


def test_each_test_that_ganesha_5_9_skips_exists():
    patterns = {**ganesha_5_9.SKIPPED, **ganesha_5_9.ONLY_HERE}
    missing = [pattern for pattern in patterns
               for file, _, name in [pattern.partition("::")]
               if not any(fnmatchcase(there, re.split(r"[\[?]", name)[0])
                          for there in names_in(file))]
    assert not missing, missing


def test_each_key_has_a_row():
    keys = (TOP / "docs/configuration.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in keys.splitlines()
            if re.match(r"\| `\w+` \| (block|export|both) ", line)]
    found = [key for row in rows for key in re.findall(r"`(\w+)`", row)]
    assert len(found) > 15
    assert not [key for key in found if f"`{key}`" not in FEATURES]


def test_no_cell_is_empty():
    for line in TEXT.splitlines():
        if line.startswith("|") and not line.startswith("| |"):
            assert all(cell.strip() for cell in line.split("|")[1:-1]), line
