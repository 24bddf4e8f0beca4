# SPDX-License-Identifier: LGPL-3.0-or-later
"""Five turns of what tests/soak/unexport.py does for hours."""
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

NIGHTLY = functools.partial(pytest.param, marks=pytest.mark.nightly)
UNEXPORT = Path(__file__).resolve().parents[1] / "soak" / "unexport.py"


@pytest.mark.parametrize("mount, vers", [
    ("shared", "4.2"), NIGHTLY("separate", "4.2"), NIGHTLY("shared", "3"),
    NIGHTLY("separate", "3")])
def test_an_export_goes_and_comes_back_under_load(lab, record, mount, vers):
    lab.altered = True
    done = subprocess.run(
        [sys.executable, "-B", UNEXPORT, "--no-up", "--vers", vers,
         "--mount", mount, "5"], text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=400,
        check=False)
    for line in re.findall(r"^unexport: the .*", done.stdout, re.M):
        record(f"{mount}, v{vers}, {line}")
    assert done.returncode == 0, done.stdout
