# SPDX-License-Identifier: LGPL-3.0-or-later
"""The read cache before real Ceph: READs that it answers, changes that it sees.

A READ from the cache is answered without a call of libcephfs, so it is in the
histogram of `total`, and not in the one of libcephfs.
"""
import os
import time

import pytest

import metrics_outputs as outputs
from metrics_outputs import SETTLED_S, CacheCounts
from fuse import Fuse
from nfs import nfs4

BLOCK = 64 << 10
BLOCKS = 16


@pytest.fixture
def fuse():
    mount = Fuse()
    yield mount
    mount.end()


@pytest.fixture(scope="module")
def counted(cluster):
    cluster.ganesha("restart", "--fsal", "CEPH_ASYNC", "--core",
                    "Enable_Metrics = true;")
    return cluster


@pytest.fixture
def client(counted):
    client = nfs4.Client(2049, f"cache-{time.time_ns()}")
    yield client
    client.leave()


def fetched():
    """READs that libcephfs has answered, up to date."""
    outputs.wait_for_update()
    return outputs.prometheus("latency_us_count", export="1", op="read",
                              stage="libcephfs")


LOST = ("invalidations own", "invalidations foreign")


def block(stamp):
    return bytes([stamp]) * BLOCK


def make(client, stamp):
    """A settled file whose blocks all have this stamp."""
    file = client.open(f"cache-{time.time_ns()}", create=nfs4.UNCHECKED)
    for n in range(BLOCKS):
        file.write(n * BLOCK, block(stamp))
    time.sleep(SETTLED_S)
    return file


def read(file):
    """The stamp of each block."""
    stamps = []
    for n in range(BLOCKS):
        data = file.read(n * BLOCK, BLOCK)
        if not data:
            break
        assert data == data[:1] * len(data)
        stamps.append(data[0])
    return stamps


def cached(client, stamp):
    """Such a file, in the cache."""
    file = make(client, stamp)
    wait_until_cached(file, stamp)
    return file


def wait_until_cached(file, stamp):
    deadline = time.monotonic() + 45
    before = None
    # A slow revalidation, on a machine that has no time, is a bypass.
    while True:
        assert read(file) == [stamp] * BLOCKS
        now = fetched()
        if now == before:
            return
        assert time.monotonic() < deadline, "it never comes from the cache"
        before = now


def test_second_read_comes_from_memory(client):
    file = cached(client, 1)
    before, counts = fetched(), CacheCounts()
    assert file.read(100, 1000) == block(1)[:1000]
    # Over the border of what two READs have fetched.
    assert file.read(BLOCK - 10, 20) == block(1)[:20]
    assert file.read(BLOCKS * BLOCK - 10, 100) == block(1)[:10]
    assert fetched() == before
    assert counts.since("hits", "hit_bytes", "misses", "fills") \
        == (3, 1000 + 20 + 10, 0, 0)
    file.close()


def test_a_miss_and_its_fill_are_counted(client):
    file, counts = make(client, 1), CacheCounts()
    before = fetched()
    # Far enough apart to be no stream.
    for n in range(0, BLOCKS, 8):
        assert file.read(n * BLOCK, BLOCK) == block(1)
    assert fetched() - before == BLOCKS // 8
    # A revalidation that took too long is a bypass: no miss, no fill.
    assert counts.since("hits") == (0,)
    misses, fills, held = counts.since("misses", "fills", "data_bytes")
    assert 1 <= fills <= misses <= BLOCKS // 8
    assert held == fills * BLOCK
    file.close()


def test_own_changes_are_seen_at_once(client):
    file = cached(client, 1)
    counts = CacheCounts()
    file.write(3 * BLOCK, block(2))
    assert read(file) == [1] * 3 + [2] + [1] * (BLOCKS - 4)
    assert counts.since(*LOST) == (1, 0)
    file.close()

    file = cached(client, 3)
    client.set(file.handle, file.stateid, size=BLOCK)
    assert read(file) == [3]
    client.set(file.handle, file.stateid, size=2 * BLOCK)
    assert read(file) == [3, 0]
    file.close()

    file = cached(client, 4)
    client.deallocate(file.handle, BLOCK, BLOCK, file.stateid)
    assert read(file) == [4, 0] + [4] * (BLOCKS - 2)
    file.close()


# What changes a file's ctime, and none of its bytes.
OWN_CHANGES = (
    lambda client, file, name: client.set(file.handle, mode=0o640),
    lambda client, file, name: client.link(file.handle, name),
    lambda client, file, name: client.rename(client.root, name, client.root,
                                             name + "-moved"),
    lambda client, file, name: client.set_xattr(file.handle, b"key", b"1"),
    lambda client, file, name: client.remove_xattr(file.handle, b"key"),
    lambda client, file, name: client.remove(name + "-moved"),
)


def test_own_change_of_no_bytes_is_not_another_clients(client):
    """Else the file would do without the cache for 5 s."""
    file = cached(client, 7)
    name = f"link-{time.time_ns()}"
    for n, change in enumerate(OWN_CHANGES):
        counts = CacheCounts()
        change(client, file, name)
        assert read(file) == [7] * BLOCKS
        assert counts.since(*LOST, "bypasses foreign") == (1, 0, 0), n
        time.sleep(SETTLED_S)
        wait_until_cached(file, 7)
    file.close()


def test_another_clients_changes_are_seen_at_once(client, fuse):
    """The size stays, and the old mtime is put back."""
    name = f"cache-{time.time_ns()}"
    client.open(name, create=nfs4.UNCHECKED).close()
    file = client.open(name)
    for stamp in range(1, 6):
        with open(fuse.folder / name, "r+b") as other:
            other.write(block(stamp) * BLOCKS)
            other.flush()
            os.fsync(other.fileno())
            os.utime(fuse.folder / name, (1000000000, 1000000000))
            assert read(file) == [stamp] * BLOCKS
        assert read(file) == [stamp] * BLOCKS
        if stamp == 3:
            time.sleep(SETTLED_S)
            wait_until_cached(file, stamp)
            counts = CacheCounts()
    # Once: after the change of what was cached the file does without.
    assert counts.since(*LOST, "bypasses foreign") == (0, 1, 1)
    file.close()


def test_budget_changes_while_clients_read(client, counted):
    file = cached(client, 6)
    counted.ganesha("reload", "--block", "Cache_Bytes = 0;")
    outputs.wait_for_cache_bytes(0)
    before = fetched()
    assert read(file) == [6] * BLOCKS
    assert fetched() - before == BLOCKS
    assert outputs.read_cache()["used_bytes"] == 0
    counted.ganesha("reload", "--block", "")
    outputs.wait_for_cache_bytes(256 << 20)
    wait_until_cached(file, 6)
    file.close()


@pytest.mark.parametrize("how, stride, size", (
    ("forward", 4 << 10, 4 << 20), ("backward", -4 << 10, 4 << 20),
    ("a column", 64 << 10, 16 << 20)))
def test_stream_is_read_ahead(client, how, stride, size, record):
    """As `dd bs=4k`, `tac` and a scan of a column read a file that is not
    cached."""
    small = 4 << 10
    file = client.open(f"stream-{time.time_ns()}", create=nfs4.UNCHECKED)
    for at in range(0, size, BLOCK):
        file.write(at, b"".join(f"{at + n:4096d}".encode()
                                for n in range(0, BLOCK, small)))
    time.sleep(SETTLED_S)
    before = fetched()
    places = range(0, size, abs(stride))
    for at in places if stride > 0 else reversed(places):
        assert file.read(at, small) == f"{at:4096d}".encode(), at
    asked = fetched() - before
    record(f"{how}: {len(places)} READs of 4 KiB, {asked} of the OSD")
    # Less than a tenth: a machine that has no time bypasses the cache.
    assert asked < len(places) // 10
