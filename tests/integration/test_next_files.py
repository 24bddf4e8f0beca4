# SPDX-License-Identifier: LGPL-3.0-or-later
"""A client that reads a folder in the order of its listing finds the next files
in the read cache, before it asks for them."""
import random
import time

import pytest

from fuse import Fuse
from metrics_outputs import CacheCounts
from nfs import nfs4
from test_delegations import delegated

FILES = 100
BYTES = 6000
RUN = time.time_ns()
AGE_S = 30    # CASYNC_NEXT_FILES_AGE_S
AHEAD = ("readahead_bytes", "readahead_used_bytes", "readahead_wasted_bytes")


@pytest.fixture(scope="module")
def fuse(counted):
    mount = Fuse()
    yield mount
    mount.end()


@pytest.fixture(scope="module")
def counted(cluster):
    with cluster.may_delegate():
        cluster.ganesha("restart", "--fsal", "CEPH_ASYNC", "--core",
                        "Enable_Metrics = true;", "--export-block",
                        "Delegations = rw;", "--nfsv4",
                        "Delegations = true;")
        yield cluster
        cluster.ganesha("stop")


@pytest.fixture(scope="module")
def folders(fuse):
    """Made by another client, so this gateway knows nothing of them."""
    for folder in ("order", "shuffled", "changed", "delegated", "new"):
        make(fuse, folder)
    time.sleep(AGE_S + 2)
    for number in range(FILES):
        path(fuse, "new", number).write_bytes(content(number, b"new"))


def content(number, word=b"old"):
    return (word + str(number).encode() + b" ") * BYTES


def path(fuse, folder, number):
    return fuse.folder / f"next-{RUN}-{folder}" / f"f{number}"


def make(fuse, folder):
    path(fuse, folder, 0).parent.mkdir()
    for number in range(FILES):
        path(fuse, folder, number).write_bytes(content(number)[:BYTES])


@pytest.fixture
def client(folders):
    client = nfs4.Client(2049, f"next-{time.time_ns()}")
    yield client
    client.leave()


def listed(client, folder):
    """The folder's handle, and its names in order."""
    handle = client.lookup(f"next-{RUN}-{folder}")
    cookie, verifier, names, end = 0, bytes(8), [], False
    while not end:
        entries, end, verifier = client.readdir(handle, cookie, verifier)
        names += [name for name, _ in entries]
        cookie = entries[-1][1]
    return handle, names


def read(client, handle, name):
    file = client.open(name, access=nfs4.READ, directory=handle,
                       want=nfs4.WANT_NO_DELEG)
    client.change_and_size(file.handle)     # as Linux, with its OPEN
    data = file.read(0, 1 << 17)
    file.close()
    return data


def test_files_in_the_order_of_their_listing(client):
    handle, names = listed(client, "order")
    assert len(names) == FILES
    counts = CacheCounts()
    for name in names:
        assert read(client, handle, name) == content(int(name[1:]))[:BYTES]
        time.sleep(0.005)
    hits, ahead, used, wasted = counts.since("hits", *AHEAD)
    assert hits >= FILES * 0.8
    assert used >= FILES * 0.8 * BYTES
    assert wasted <= ahead * 0.1


def test_files_in_another_order(client):
    handle, names = listed(client, "shuffled")
    random.Random(1).shuffle(names)
    counts = CacheCounts()
    for name in names:
        assert read(client, handle, name) == content(int(name[1:]))[:BYTES]
    assert counts.since("readahead_bytes")[0] <= FILES * BYTES / 3


def test_a_file_that_another_client_changes_meanwhile(client, fuse):
    handle, names = listed(client, "changed")
    for name in names[:10]:
        assert read(client, handle, name) == content(int(name[1:]))[:BYTES]
    time.sleep(0.5)
    number = int(names[12][1:])
    path(fuse, "changed", number).write_bytes(content(number, b"new"))
    for name in names[10:12]:
        assert read(client, handle, name) == content(int(name[1:]))[:BYTES]
    assert read(client, handle, names[12]) == content(number, b"new")[:1 << 17]


def test_a_delegated_file_is_not_opened(client):
    handle, names = listed(client, "delegated")
    holder = nfs4.Client(2049, f"holder-{time.time_ns()}")
    held = delegated(holder, names[2], nfs4.BOTH, nfs4.WRITE_DELEG,
                     directory=handle)
    counts = CacheCounts()
    for name in names[:2]:
        assert read(client, handle, name) == content(int(name[1:]))[:BYTES]
    time.sleep(1)
    assert counts.since("readahead_bytes")[0] >= BYTES
    assert holder.recalls.empty()
    held.close()
    held.return_delegation()
    holder.leave()


def test_new_files_are_not_fetched(client):
    handle, names = listed(client, "new")
    counts = CacheCounts()
    for name in names:
        assert read(client, handle, name) \
            == content(int(name[1:]), b"new")[:1 << 17]
    assert counts.since("readahead_bytes") == (0,)
