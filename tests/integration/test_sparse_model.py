# SPDX-License-Identifier: LGPL-3.0-or-later
"""1,000 random extents in a sparse file of 200 MiB read back as written."""
import re

import pytest


def result(output):
    found = re.search(r"^sparse: .*", output, re.M)
    assert found, f"no result: {output}"
    return found[0]


def test_ceph_async_equals_the_model(lab, record):
    said = result(lab.script("sparse_model.py", "/mnt/nfs/sparse-async"))
    record(f"200 MiB, 1,000 extents, CEPH_ASYNC: {said}")
    assert said == "sparse: equal"


@pytest.mark.evidence
def test_ceph_with_async_is_compared(lab, second, record):
    """FSAL_CEPH's own asynchronous path: both outcomes pass, the line that
    is recorded says which."""
    second(fsal="CEPH", block="async = true;")
    said = result(lab.script("sparse_model.py", "/mnt/nfs/sparse-ceph",
                             name="b"))
    record(f"200 MiB, 1,000 extents, CEPH with async = true: {said}")
    assert said.startswith("sparse: ")
