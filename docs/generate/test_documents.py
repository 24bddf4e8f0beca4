# SPDX-License-Identifier: LGPL-3.0-or-later
"""The test of the test: whichever place alone a key is edited in, the check
fails; and what the documents show is what the table has.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import documents

ROOT = documents.HERE.parents[1]
KEYS = documents.read_keys(os.environ["CASYNC_KEYS_JSON"])


def check(keys, root):
    """What documents.py --check says; its status is whether that is empty."""
    return "\n".join(documents.differences(keys, Path(root)))


def program(root):
    return subprocess.run(
        [sys.executable, "-B", str(documents.HERE / "documents.py"),
         "--check", os.environ["CASYNC_KEYS_JSON"], str(root)],
        stdout=subprocess.DEVNULL, timeout=60, check=False).returncode


class Drift(unittest.TestCase):
    def test_as_it_is(self):
        self.assertEqual(check(KEYS, ROOT), "")
        self.assertEqual(program(ROOT), 0)

    def test_the_status_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(program(folder), 1)

    def test_a_key_edited_in_the_table_only(self):
        """Each key, and each thing about it that is shown."""
        for index, key in enumerate(KEYS):
            for what, value in (("name", "Other_Name"), ("change", "live"),
                                ("summary", "Something else."),
                                ("text", "Something else.")):
                if key[what] == value:
                    value = "restart"
                with self.subTest(key=key["name"], what=what):
                    keys = json.loads(json.dumps(KEYS))
                    keys[index][what] = value
                    if what == "name":
                        # Any literal: the sample has examples by name.
                        keys[index]["preset_string"] = \
                            key["preset_string"] or "x"
                    said = check(keys, ROOT)
                    self.assertNotEqual(said, "")
                    if what != "change" and key["type"] != "ganesha":
                        for name in documents.DOCUMENTS.values():
                            if what == "text" and not key["text"] and \
                                    name.endswith(".md"):
                                continue
                            self.assertIn(f"+++ {name} by the code", said)

    def test_a_number_edited_in_the_table_only(self):
        for index, key in enumerate(KEYS):
            if key["type"] != "number":
                continue
            for what in ("min", "max", "preset", "multiple"):
                if what == "preset" and key["unset"]:
                    what = "or_zero"    # shown instead
                with self.subTest(key=key["name"], what=what):
                    keys = json.loads(json.dumps(KEYS))
                    keys[index][what] = not key[what] \
                        if what == "or_zero" else key[what] + 7
                    self.assertNotEqual(check(keys, ROOT), "")

    def test_a_document_edited_only(self):
        """Each document, in the first line that has the key's name."""
        for name in documents.DOCUMENTS.values():
            for key in KEYS:
                with self.subTest(document=name, key=key["name"]), \
                        tempfile.TemporaryDirectory() as folder:
                    for other in documents.DOCUMENTS.values():
                        copy = Path(folder) / other
                        copy.parent.mkdir(parents=True, exist_ok=True)
                        shutil.copyfile(ROOT / other, copy)
                    path = Path(folder) / name
                    text = path.read_text(encoding="utf-8")
                    self.assertIn(key["name"], text)
                    path.write_text(
                        text.replace(key["name"], key["name"] + "x", 1),
                        encoding="utf-8")
                    self.assertIn(f"+++ {name} by the code",
                                  check(KEYS, folder))


class Shown(unittest.TestCase):
    def test_numbers_as_people_say_them(self):
        for number, text in ((0, "0"), (4096, "4 KiB"), (1 << 30, "1 GiB"),
                             (65537, "65537"), (3 << 20, "3 MiB")):
            self.assertEqual(documents.size(number), text)

    def test_the_man_page_has_every_key(self):
        page = (ROOT / "docs/man/ganesha-ceph-async-config.8").read_text()
        for key in KEYS:
            self.assertIn(f".B {documents.roff(key['name'])}\n", page)


if __name__ == "__main__":
    unittest.main()
