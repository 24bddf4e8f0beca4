# SPDX-License-Identifier: LGPL-3.0-or-later
"""What the chaos job forgives git: its own empty lock file, and only if the
gateway was killed meanwhile."""
import os
import sys
import time
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "chaos"))

from trees import Refused, Trees


@pytest.mark.parametrize("killed_after_s, content, said, forgiven", [
    (1, b"", "File exists", True),
    (1, b"x", "File exists", False),
    (-1, b"", "File exists", False),
    (None, b"", "File exists", False),
    (1, b"", "Input/output error", False),
])
def test_what_is_forgiven(tmp_path, killed_after_s, content, said, forgiven):
    top, signals = tmp_path / "top", tmp_path / "signals"
    clone = top / "clone-1"
    clone.mkdir(parents=True)
    signals.mkdir()
    (clone / "index.lock").write_bytes(content)
    trees = Trees(top, signals)
    trees.began = time.time()
    if killed_after_s is not None:
        when = trees.began + killed_after_s
        (signals / "killed").touch()
        os.utime(signals / "killed", (when, when))
    err = Refused(f"fatal: Unable to create '{clone}/index.lock': {said}.")
    assert trees.may_begin_anew(err) == forgiven
    assert trees.cut_off == forgiven
    assert clone.exists() != forgiven
