# SPDX-License-Identifier: LGPL-3.0-or-later
"""ONC RPC (RFC 5531) over one TCP connection, with AUTH_SYS.

Nothing is sent again: libnfs and kernels reconnect and retransmit behind the
caller's back.  Here a reply belongs to this connection.  A call that has no
reply when the connection ends is not answered.

    Connection   one caller: send() gives the xid, receive() the next reply
    Concurrent   many callers: a thread hands each reply to its caller
"""
import itertools
import os
import queue
import socket
import struct
import threading

from nfs.xdr import Reader, number, opaque

NFS, MOUNT = 100003, 100005
LAST_FRAGMENT = 1 << 31
CALL, REPLY = 0, 1
AUTH_NONE = struct.pack(">II", 0, 0)


class Gone(ConnectionError):
    """The connection ended, or could not be made."""


class Refused(AssertionError):
    """The server answered with an error."""


class Rejected(Refused):
    """The answer to call XID is an error of RPC itself."""

    def __init__(self, why, xid):
        super().__init__(why)
        self.xid = xid


def auth_sys(uid, gid):
    body = number(0) + opaque(b"lab") + struct.pack(">III", uid, gid, 0)
    return number(1) + opaque(body)


def results_of(reader):
    """Skips the header of an accepted reply; READER is behind its xid and
    its type.  A reason when the call was not accepted."""
    if reader.number():
        return "the call was denied"
    reader.number()
    reader.opaque()             # the verifier
    status = reader.number()
    return f"the call was not accepted: {status}" if status else None


class Connection:
    """TIMEOUT, in seconds, is that of each wait for data.  GREETING goes ahead
    of all calls: a PROXY header."""

    def __init__(self, port, uid=0, gid=0, timeout=60, host="127.0.0.1",
                 greeting=b""):
        try:
            self.socket = socket.create_connection((host, port), timeout)
        except OSError as err:
            raise Gone(err) from err
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(greeting)
        self.xids = itertools.count(int.from_bytes(os.urandom(3)) << 7)
        self.credential = auth_sys(uid, gid)
        self.buffer = bytearray()
        self.sending = threading.Lock()

    def fileno(self):
        return self.socket.fileno()

    def close(self):
        self.socket.close()

    def send(self, procedure, arguments, program=NFS, version=3):
        """The call's xid."""
        xid = next(self.xids) & 0xffffffff
        self._send_call(xid, program, version, procedure, arguments)
        return xid

    def receive(self):
        """The next reply: its xid, and a Reader of its results."""
        reader = self._message()
        xid, kind = reader.take("II")
        assert kind == REPLY
        why = results_of(reader)
        if why:
            raise Rejected(why, xid)
        return xid, reader

    def call(self, procedure, arguments, program=NFS, version=3):
        """Send and wait: a Reader of the results."""
        xid = self.send(procedure, arguments, program, version)
        got, reader = self.receive()
        assert got == xid
        return reader

    def pending(self):
        """A whole reply has come already."""
        return len(self.buffer) >= 4 and len(self.buffer) - 4 >= \
            struct.unpack_from(">I", self.buffer)[0] & ~LAST_FRAGMENT

    def _send_call(self, xid, program, version, procedure, arguments):
        self._send_message(
            struct.pack(">IIIIII", xid, CALL, 2, program, version,
                        procedure) + self.credential + AUTH_NONE + arguments)

    def _send_message(self, message):
        """One record of one fragment."""
        try:
            with self.sending:
                self.socket.sendall(
                    number(LAST_FRAGMENT | len(message)) + message)
        except OSError as err:
            raise Gone(err) from err

    def _message(self):
        """The next record, of all its fragments."""
        message, last = bytearray(), False
        while not last:
            head, = struct.unpack(">I", self._exactly(4))
            last = bool(head & LAST_FRAGMENT)
            message += self._exactly(head & ~LAST_FRAGMENT)
        return Reader(bytes(message))

    def _exactly(self, count):
        while len(self.buffer) < count:
            try:
                more = self.socket.recv(1 << 20)
            except OSError as err:
                raise Gone(err) from err
            if not more:
                raise Gone("end of the connection")
            self.buffer += more
        data = bytes(self.buffer[:count])
        del self.buffer[:count]
        return data


class Concurrent(Connection):
    """Any number of calls in flight, from any thread; replies are handled
    by a thread of the connection.

    CALLED, if there is one, gets a Reader of the arguments of each call that
    the server makes, and its procedure; it gives the results, or None for no
    answer.
    """

    def __init__(self, port, uid=0, gid=0, called=None, host="127.0.0.1",
                 greeting=b""):
        super().__init__(port, uid, gid, timeout=30, host=host,
                         greeting=greeting)
        self.socket.settimeout(None)
        self.called = called
        self.waiting = {}       # xid: called with Reader, or an exception
        self.ended = None       # what the connection ended with
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self._collect, daemon=True)
        self.thread.start()

    def send(self, procedure, arguments, answered, program=NFS, version=3):
        """ANSWERED gets a Reader of the results, on the connection's thread;
        after the end of the connection it is never called."""
        def reply(came):
            if isinstance(came, Rejected):
                raise came
            if isinstance(came, Reader):
                answered(came)
        self._send(procedure, arguments, reply, program, version)

    def call(self, procedure, arguments, program=NFS, version=3, seconds=30):
        """Send and wait: a Reader of the results.  TimeoutError when there
        is no answer by then."""
        came = queue.SimpleQueue()
        self._send(procedure, arguments, came.put, program, version)
        try:
            reply = came.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError(f"procedure {procedure}: no answer within "
                               f"{seconds} s") from None
        if isinstance(reply, Exception):
            raise reply
        return reply

    def close(self):
        """Shut down and wait for the thread."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.thread.join(30)
        self.socket.close()

    def drop(self):
        """Without a word: the thread closes when the next message comes.  If we
        closed while it is about to read, the next connection would get the
        socket's number, and the thread would take an answer of that one."""
        with self.lock:
            self.ended = self.ended or "dropped"

    def _send(self, procedure, arguments, reply, program, version):
        xid = next(self.xids) & 0xffffffff
        with self.lock:
            if self.ended:
                raise Gone(self.ended)
            self.waiting[xid] = reply
        self._send_call(xid, program, version, procedure, arguments)

    def _collect(self):
        try:
            while not self.ended:
                self._handle(self._message())
            self.socket.close()
            raise Gone(self.ended)
        except Gone as err:
            self._end(err)
        except BaseException as err:
            self._end(Gone(err))
            raise

    def _end(self, err):
        with self.lock:
            self.ended = err
            waiting, self.waiting = self.waiting, {}
        for reply in waiting.values():
            reply(err)

    def _handle(self, reader):
        xid, kind = reader.take("II")
        if kind == CALL:
            self._answer(xid, reader)
            return
        why = results_of(reader)
        with self.lock:
            reply = self.waiting.pop(xid)
        reply(Rejected(why, xid) if why else reader)

    def _answer(self, xid, reader):
        procedure = reader.take("IIII")[3]
        for _ in range(2):                  # credential, verifier
            reader.number()
            reader.opaque()
        results = self.called(reader, procedure)
        if results is not None:
            self._send_message(struct.pack(">IIIIII", xid, REPLY, 0, 0, 0, 0)
                               + results)
