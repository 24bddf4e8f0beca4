# SPDX-License-Identifier: LGPL-3.0-or-later
"""Small adjacent WRITEs share operations of the OSD, and nothing else: each
has its own answer, and what was acknowledged is there."""
import json
import re
import struct
import threading
import time
from pathlib import Path

import pytest

from lab_program import ceph
from nfs import nfs3, rpc

PORT = 2049
BLOCK = 4096
SOCKETS = Path("/run/casync-lab")
IN_FLIGHT = 64
WRITES = 4096


def osd(*args):
    return ceph("tell", "osd.0", *args)


def osd_writes():
    return json.loads(osd("perf", "dump", "osd"))["osd"]["op_w"]


def block(number):
    """Tells which one it is, all over."""
    return struct.pack("<Q", number) * (BLOCK // 8)


class Stream:
    """Stable writes of one block each, one behind the other, so many in
    flight; each answer makes the next request."""

    def __init__(self, connection, handle, blocks):
        self.connection = connection
        self.handle = handle
        self.blocks = blocks
        self.sent = 0
        self.answers = {}       # block: (status, bytes, how stable)
        self.lock = threading.Lock()
        self.moved = threading.Event()

    def start(self):
        for _ in range(IN_FLIGHT):
            self._send()
        return self

    def _send(self):
        with self.lock:
            number = self.sent
            if number == self.blocks:
                return
            self.sent += 1
        self.connection.send(
            nfs3.WRITE,
            nfs3.write_arguments(self.handle, number * BLOCK, block(number)),
            lambda reply: self._answered(number, reply))

    def _answered(self, number, reply):
        assert number not in self.answers, "answered twice"
        self.answers[number] = nfs3.write_result(reply)
        self.moved.set()
        try:
            self._send()
        except OSError:
            pass                # the gateway is gone

    def wait_for(self, count, seconds=60):
        end = time.monotonic() + seconds
        while len(self.answers) < count:
            self.moved.wait(1)
            self.moved.clear()
            assert time.monotonic() < end, \
                f"{len(self.answers)} of {count} answers"


def content(connection, handle, size):
    data = b""
    while len(data) < size:
        more = nfs3.read(connection, handle, len(data), 1 << 20)
        if not more:
            break
        data += more
    return data


class Opened:
    def __init__(self, name):
        self.connection = rpc.Concurrent(PORT)
        self.root = nfs3.root_of("/ceph", PORT + 1)
        self.handle = nfs3.create(self.connection, self.root, name)

    def stream(self, blocks=WRITES):
        """OSD writes that so many blocks took; all is checked."""
        before = osd_writes()
        stream = Stream(self.connection, self.handle, blocks).start()
        stream.wait_for(blocks)
        after = osd_writes()
        assert set(stream.answers.values()) == \
            {(0, BLOCK, nfs3.FILE_SYNC)}
        assert content(self.connection, self.handle, blocks * BLOCK) == \
            b"".join(map(block, range(blocks)))
        return after - before

    def close(self, name):
        nfs3.remove(self.connection, self.root, name)
        self.connection.close()


@pytest.fixture
def opened(request):
    """opened(): a new file; to be called once Ganesha is as it should be."""
    files = []
    name = f"gather-{request.node.name}"

    def make():
        files.append(Opened(name))
        return files[0]
    yield make
    for file in files:
        file.close(name)


@pytest.fixture
def keyed(cluster):
    def restart(keys):
        cluster.ganesha("restart", "--export", keys)
    yield restart
    cluster.ensure_default()


@pytest.fixture
def history():
    """The OSD remembers every op of the test, not the 20 slowest."""
    before = json.loads(osd("config", "get", "osd_op_history_size"))
    osd("config", "set", "osd_op_history_size", "20000")
    yield
    osd("config", "set", "osd_op_history_size",
        before["osd_op_history_size"])


def test_a_stream_needs_fewer_osd_operations_than_writes(lab, opened, record):
    ops = opened().stream()
    record(f"{WRITES} stable 4 KiB writes in sequence, {IN_FLIGHT} in flight: "
           f"{ops} OSD writes")
    assert ops <= WRITES * 0.6


def test_off_by_key(keyed, opened):
    keyed("Gather_Bytes = 0;")
    ops = opened().stream()
    assert ops >= WRITES


def test_the_key_bounds_each_operation(keyed, opened, history):
    keyed("Gather_Bytes = 16384;")
    file = opened()
    ops = file.stream()
    assert ops < WRITES
    inode = int.from_bytes(file.handle[5:13], "little")
    pattern = re.compile(rf":{inode:x}\.[0-9a-f]+:head .*\[write (\d+)~(\d+)")
    found = [tuple(map(int, match.groups()))
             for op in json.loads(osd("dump_historic_ops"))["ops"]
             if (match := pattern.search(op["description"]))]
    lengths = {length for _, length in found}
    assert sum(length for _, length in found) >= WRITES * BLOCK * 0.9
    assert max(lengths) == 16384
    assert lengths <= {BLOCK, 2 * BLOCK, 3 * BLOCK, 4 * BLOCK}


def test_a_reload_switches_it(lab, opened):
    file = opened()
    assert file.stream() <= WRITES * 0.6
    try:
        lab.ganesha("reload", "--export", "Gather_Bytes = 0;")
        assert file.stream() >= WRITES
    finally:
        lab.ganesha("reload", "--export", "")
    assert file.stream() <= WRITES * 0.6


def test_one_at_a_time_goes_as_it_comes(lab, opened):
    file = opened()
    before = osd_writes()
    for number in range(100):
        reply = nfs3.write(file.connection, file.handle, number * BLOCK,
                           block(number))
        assert reply.count == BLOCK
    assert osd_writes() - before >= 100


@pytest.mark.parametrize("after", (300, 1500, 6000))
def test_what_a_killed_gateway_had_acknowledged_is_there(lab, after):
    """SIGKILL in the midst of a stream that makes the file grow."""
    name = f"gather-killed-{after}"
    file = Opened(name)
    stream = Stream(file.connection, file.handle, 1 << 20).start()
    stream.wait_for(after)
    lab.ganesha("kill9")
    file.connection.thread.join(30)
    acknowledged = dict(stream.answers)
    assert set(acknowledged.values()) == {(0, BLOCK, nfs3.FILE_SYNC)}
    lab.ganesha("start")

    again = rpc.Concurrent(PORT)
    data = content(again, file.handle, stream.sent * BLOCK)
    for number in acknowledged:
        assert data[number * BLOCK:(number + 1) * BLOCK] == block(number), \
            f"block {number} of {len(acknowledged)} acknowledged ones"
    for number in set(range(len(data) // BLOCK)) - set(acknowledged):
        there = data[number * BLOCK:(number + 1) * BLOCK]
        assert there in (block(number), bytes(BLOCK)), f"block {number}"
    nfs3.remove(again, file.root, name)
    again.close()


def test_a_linux_client_reads_what_it_wrote(lab, tmp_path):
    """NFSv4.2, 64 stable 4 KiB writes in flight, checked by fio."""
    report = tmp_path / "fio.json"
    before = osd_writes()
    lab.client("fio", "--name=stream", "--filename=/mnt/nfs/gather-fio",
               "--rw=write", "--bs=4k", "--size=16m", "--ioengine=libaio",
               "--iodepth=64", "--direct=1", "--sync=1", "--verify=crc32c",
               "--verify_state_save=0", "--unlink=1", "--output-format=json",
               f"--output={report}")
    text = report.read_text()
    job = json.loads(text[text.index("{"):])["jobs"][0]
    assert job["error"] == 0
    assert job["write"]["total_ios"] == 4096
    assert osd_writes() - before < 4096
