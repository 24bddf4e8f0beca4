# SPDX-License-Identifier: LGPL-3.0-or-later
"""Another CephFS client truncates and extends a file while it is read.

A read past the end of the file, truncated meanwhile, hangs in libcephfs (rw.c,
rw_clamp_to_size()).  Then the gateway makes a new CephFS client; so it runs on
a Ganesha of its own.
"""
import time

import pytest

from lab_program import LOGS, Log

SECONDS = 70

# On a machine that has no time, libcephfs loses a race (docs/limits.md).
pytestmark = pytest.mark.measures

HUNG = r"inode 0x[0-9a-f]+ was truncated while it was read"


@pytest.fixture
def victim(cluster, second):
    """Starts Ganesha "b", which may hang for good, and the client with it."""
    yield second
    cluster.run("ganesha", "kill9", "--name", "b")
    cluster.evict_all_but_a()


def beside_another_client(cluster, layout, vers):
    return cluster.script(
        "other_client.py", f"/mnt/nfs/other-{time.time_ns()}", layout,
        vers=vers, name="b", seconds=SECONDS)


@pytest.mark.parametrize("layout, vers", [
    ("object_4m", "3"), ("unit_64k_times_4", "4.2")])
def test_reads_are_states_of_the_file(cluster, till_end, victim, record, layout,
                                      vers):
    till_end(cluster.may_lose())
    victim()
    said = beside_another_client(cluster, layout, vers)
    hung = len(Log(LOGS / "ganesha-b.log").matching(HUNG))
    record(f"beside another client, {layout}, v{vers}: {said.strip()}, "
           f"{hung} READs that libcephfs never answered")


@pytest.mark.evidence
@pytest.mark.parametrize("block", ("", "async = true;"))
def test_ceph_is_compared(cluster, victim, record, block):
    """FSAL_CEPH, blocking and asynchronous: the recorded line says how it
    went."""
    victim(fsal="CEPH", block=block)
    try:
        said = beside_another_client(cluster, "object_4m", "4.2").strip()
    except AssertionError as err:
        said = str(err).splitlines()[0]
    record(f"beside another client, CEPH {block or 'as it is'}: {said}")
    assert said
