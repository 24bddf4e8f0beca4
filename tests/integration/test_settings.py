# SPDX-License-Identifier: LGPL-3.0-or-later
"""Cases of client/ again, with settings of Ganesha or of the plugin that
make other code answer.
"""
import pytest

import all_cases  # noqa: F401  (registers the cases)
from batch import Batch
from registry import CASES, VERSIONS

EOF = [name for name in CASES if name.startswith("end_of_file")]
ERRORS = [name for name in CASES if name.startswith("errors_of")]
READING = [name for name, one in CASES.items() if
           name.startswith("reading_") and one.module == "case_access"]


def run(lab, version, names, *options):
    """Each of NAMES with that setting; all that failed are told of."""
    lab.ganesha("restart", "--fsal", "CEPH_ASYNC", *options)
    names = [name for name in names if version in CASES[name].versions]
    assert names
    batch = Batch(lab, version, names)
    failed = {name: why for name in names if (why := batch.outcome(name))}
    assert not failed, "\n".join(f"{name}: {why}"
                                 for name, why in failed.items())


@pytest.mark.parametrize("version", VERSIONS)
def test_nobody_but_us_tells_the_end_of_a_file(lab, version):
    """Ganesha does not look at the size itself: end_of_file is ours."""
    run(lab, version, EOF, "--core", "Getattrs_In_Complete_Read = false;")


@pytest.mark.parametrize("version", ("4.0", "4.1", "4.2"))
def test_access_is_checked_after_the_read(lab, version):
    """In the answer, on our thread: with the requester's credentials."""
    run(lab, version, READING, "--export-block",
        "Read_Access_Check_Policy = post;")


@pytest.mark.parametrize("version", ("3", "4.2"))
@pytest.mark.parametrize("mode", ("fdatasync", "full"))
def test_errors_in_every_mode(lab, version, mode):
    run(lab, version, ERRORS, "--export", f"Stable_Write = {mode};")
