# SPDX-License-Identifier: LGPL-3.0-or-later
"""1,000 random extents in a sparse file of 200 MiB read back as written."""
import hashlib
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


# One byte at each end of 41 MiB: the hole covers nine whole RADOS objects.
END = 41 << 20
MAKE = ("rm -f {0}; printf a > {0}; "
        f"printf b | dd of={{0}} bs=1 seek={END} conv=notrunc status=none")
READ = "md5sum < {0} || echo unreadable"


def digest():
    md5 = hashlib.md5(b"a", usedforsecurity=False)
    md5.update(bytes(END - 1) + b"b")
    return md5.hexdigest()


def test_a_hole_of_whole_objects_is_zeros(lab):
    path = "/mnt/nfs/hole-async"
    lab.client("bash", "-c", MAKE.format(path))
    assert lab.client("bash", "-c", READ.format(path)).startswith(digest())


@pytest.mark.evidence
def test_ceph_with_async_fails_a_hole_of_whole_objects(lab, second, record):
    """What tests/README.md says of FSAL_CEPH; should it be mended one day,
    the document is to be."""
    second(fsal="CEPH", block="async = true;")
    path = "/mnt/nfs/hole-ceph"
    lab.client("bash", "-c", MAKE.format(path), name="b")
    said = lab.client("bash", "-c", READ.format(path), name="b").strip()
    record(f"a hole of whole objects, CEPH with async = true: {said}")
    assert "unreadable" in said     # md5sum's complaint comes beside it
