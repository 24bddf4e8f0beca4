# SPDX-License-Identifier: LGPL-3.0-or-later
"""The RPC layer of our own NFS clients, against a server that is a socket:
what no Ganesha does at will.  Needs no cluster."""
import queue
import socket
import struct
import threading
import time

import pytest

from nfs import nfs4, rpc, xdr

ACCEPTED = struct.pack(">IIII", 0, 0, 0, 0)
DENIED = struct.pack(">II", 1, 0)
GARBAGE_ARGS = struct.pack(">IIII", 0, 0, 0, 4)


class Server:
    """Gives the xid, program, version and procedure of each call, and sends
    what the test tells it to."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.socket = None

    def call(self):
        if self.socket is None:
            self.socket, _ = self.listener.accept()
            self.file = self.socket.makefile("rb")
        size, = struct.unpack(">I", self.file.read(4))
        message = xdr.Reader(self.file.read(size & ~rpc.LAST_FRAGMENT))
        xid, kind, _, *which = message.take("IIIIII")
        assert kind == rpc.CALL
        return xid, *which

    def send(self, message, pieces=1):
        """In so many fragments."""
        step = -(-len(message) // pieces)
        for at in range(0, len(message), step):
            part = message[at:at + step]
            last = rpc.LAST_FRAGMENT if at + step >= len(message) else 0
            self.socket.sendall(xdr.number(last | len(part)) + part)

    def reply(self, xid, results=b"", header=ACCEPTED, pieces=1):
        self.send(struct.pack(">II", xid, rpc.REPLY) + header + results,
                  pieces)

    def end(self):
        if self.socket:
            self.file.close()
            self.socket.close()
        self.listener.close()


@pytest.fixture
def server():
    one = Server()
    yield one
    one.end()


def beside(work, *args, **more):
    """The queue that gets what WORK gave, or raised."""
    came = queue.SimpleQueue()

    def run():
        try:
            came.put(work(*args, **more))
        except Exception as err:    # noqa: BLE001  (looked at by the test)
            came.put(err)
    threading.Thread(target=run, daemon=True).start()
    return came


def test_xdr_there_and_back():
    data = xdr.number(7) + xdr.wide(1 << 40) + xdr.opaque(b"abcde") + b"xy\0\0"
    reader = xdr.Reader(data)
    assert (reader.number(), reader.hyper()) == (7, 1 << 40)
    assert (reader.opaque(), reader.fixed(2)) == (b"abcde", b"xy")
    assert reader.at == len(data)
    with pytest.raises(EOFError):
        reader.fixed(1)


def test_a_reply_in_fragments(server):
    connection = rpc.Connection(server.port)
    came = beside(connection.call, 1, b"", program=rpc.MOUNT)
    xid, *which = server.call()
    assert which == [rpc.MOUNT, 3, 1]
    server.reply(xid, xdr.opaque(b"in pieces"), pieces=7)
    assert came.get(timeout=10).opaque() == b"in pieces"
    connection.close()


def test_replies_find_their_callers(server):
    """They come in the reverse order of the calls."""
    connection = rpc.Concurrent(server.port)
    calls = []
    for number in range(3):
        came = beside(connection.call, number, b"")
        calls.append((server.call(), came))
    for (xid, _, _, procedure), _ in reversed(calls):
        server.reply(xid, xdr.number(procedure))
    assert [came.get(timeout=10).number() for _, came in calls] == [0, 1, 2]
    connection.close()


@pytest.mark.parametrize("kind", (rpc.Connection, rpc.Concurrent))
@pytest.mark.parametrize("header, why", (
    (DENIED, "the call was denied"),
    (GARBAGE_ARGS, "the call was not accepted: 4")))
def test_errors_of_rpc_itself(server, kind, header, why):
    connection = kind(server.port)
    came = beside(connection.call, 1, b"")
    xid, *_ = server.call()
    server.reply(xid, header=header)
    error = came.get(timeout=10)
    assert isinstance(error, rpc.Rejected)
    assert (str(error), error.xid) == (why, xid)
    connection.close()


@pytest.mark.parametrize("kind", (rpc.Connection, rpc.Concurrent))
def test_the_end_of_the_connection_is_told_at_once(server, kind):
    connection = kind(server.port)
    came = beside(connection.call, 1, b"")
    server.call()
    server.end()
    assert isinstance(came.get(timeout=5), rpc.Gone)
    with pytest.raises(rpc.Gone):
        for _ in range(100):        # the first may go into the void
            connection.send(1, b"", *[print] * (kind is rpc.Concurrent))
            time.sleep(0.01)
    connection.close()


def test_a_dropped_connection_keeps_its_socket(server):
    """Until its thread reads no more: the next connection would get the number,
    and lose its first answer to that thread."""
    connection = rpc.Concurrent(server.port)
    came = beside(connection.call, 1, b"")
    xid, *_ = server.call()
    number = connection.fileno()
    connection.drop()
    assert connection.fileno() == number
    with pytest.raises(rpc.Gone):
        connection.call(1, b"")
    server.reply(xid, xdr.number(7))
    assert came.get(timeout=10).number() == 7
    connection.thread.join(10)
    assert connection.fileno() == -1


def test_nothing_is_sent_again(server):
    """A call that has no answer is one call; its late answer harms no
    other."""
    connection = rpc.Concurrent(server.port)
    came = beside(connection.call, 1, b"", seconds=0.2)
    late, *_ = server.call()
    assert isinstance(came.get(timeout=5), TimeoutError)
    came = beside(connection.call, 2, b"")
    xid, _, _, procedure = server.call()
    assert procedure == 2
    server.reply(late, xdr.number(1))
    server.reply(xid, xdr.number(2))
    assert came.get(timeout=5).number() == 2
    connection.close()


def test_a_call_by_the_server(server):
    """CB_NULL while a call of ours waits."""
    connection = rpc.Concurrent(
        server.port, called=lambda reader, procedure: xdr.number(procedure))
    came = beside(connection.call, 1, b"")
    xid, *_ = server.call()
    server.send(struct.pack(">IIIIII", 77, rpc.CALL, 2, nfs4.CALLBACK, 1, 0) +
                rpc.AUTH_NONE * 2)
    size, = struct.unpack(">I", server.file.read(4))
    answer = xdr.Reader(server.file.read(size & ~rpc.LAST_FRAGMENT))
    assert answer.take("IIIIIII") == (77, rpc.REPLY, 0, 0, 0, 0, 0)
    server.reply(xid, xdr.number(5))
    assert came.get(timeout=5).number() == 5
    connection.close()


def test_a_compound_fails_where_it_stops():
    """The operation's status, or that of the whole if there is none."""
    operations = [nfs4.put(b"h"), nfs4.GETFH]
    stopped = xdr.number(nfs4.STALE) + xdr.opaque(b"") + xdr.number(1) + \
        struct.pack(">II", 22, nfs4.STALE)
    with pytest.raises(nfs4.Failed) as failure:
        nfs4.compound_results(xdr.Reader(stopped), operations)
    assert (failure.value.operation, failure.value.status) == (22, nfs4.STALE)
    nothing = xdr.number(10021) + xdr.opaque(b"") + xdr.number(0)
    with pytest.raises(nfs4.Failed) as failure:
        nfs4.compound_results(xdr.Reader(nothing), operations)
    assert failure.value.status == 10021
