# SPDX-License-Identifier: LGPL-3.0-or-later
"""Clients for requests that may be wrong: one connection each, and for NFSv4
a client id, for 4.1 and 4.2 a session of several slots.

Whatever an answer says, a client goes on: a lost connection or session is
made anew by renew().
"""
import hashlib
import itertools
import struct

from nfs import nfs4, rpc
from nfs.xdr import number, opaque, wide
from wire_values import Own

SLOTS = 16
ANSWER_S = 20
SEQUENCE, SETCLIENTID, CONFIRM, EXCHANGE_ID = 53, 35, 36, 42
CREATE_SESSION, DESTROY_SESSION, DESTROY_CLIENTID, RECLAIM_COMPLETE = \
    43, 44, 57, 58
BADSESSION, DEADSESSION, EXPIRED, STALE_CLIENTID = 10052, 10078, 10011, 10022


class NoAnswer(Exception):
    """The server is there, and says nothing."""


class Line(rpc.Connection):
    """Takes the answer to one call; calls of the server are not answered."""

    def __init__(self, port, uid=0):
        super().__init__(port, uid, uid, timeout=ANSWER_S)
        self.early = {}         # answers to calls that are taken later

    def raw(self, data):
        """DATA as it is, without a record mark."""
        try:
            self.socket.sendall(data)
        except OSError as err:
            raise rpc.Gone(err) from err

    def answer(self, xid):
        """A Reader of the results."""
        while xid not in self.early:
            try:
                reader = self._message()
            except rpc.Gone as err:
                if isinstance(err.args[0], TimeoutError):
                    raise NoAnswer(f"call {xid:#x}") from err
                raise
            got, kind = reader.take("II")
            if kind == rpc.REPLY:
                self.early[got] = reader
        reader = self.early.pop(xid)
        why = rpc.results_of(reader)
        if why:
            raise rpc.Rejected(why, xid)
        return reader


def _verifier(*words):
    return hashlib.sha256(" ".join(map(str, words)).encode()).digest()[:8]


class Client3:
    """NFSv3: nothing but a connection."""
    version = 3

    def __init__(self, port, name, uid=0):
        self.port, self.name, self.uid = port, name, uid
        self.line, self.stateids = None, Own()
        self.renew()

    def renew(self):
        if self.line:
            self.line.close()
        self.line = Line(self.port, self.uid)

    def end(self):
        self.line.close()


class Client4:
    """NFSv4.MINOR.  SEED makes the verifier: another one makes the server drop
    all states of the client of that name."""
    version = 4

    def __init__(self, port, name, minor, seed, uid=0):
        self.port, self.name, self.minor = port, name, minor
        self.seed, self.uid = seed, uid
        self.line, self.clientid, self.session = None, 0, bytes(16)
        self.sequences, self.seqids = [0] * SLOTS, {}
        self.stateids = Own()
        self.lives = itertools.count()
        self.renew()

    # --- client id and session

    def renew(self):
        """A new connection, client id and session; all states are gone."""
        if self.line:
            self.line.close()
        self.line = Line(self.port, self.uid)
        verifier = _verifier(self.seed, next(self.lives))
        self.seqids, self.stateids = {}, Own()
        if self.minor:
            self._new_session(verifier)
        else:
            self._new_clientid(verifier)

    def _call(self, *operations):
        arguments = nfs4.compound_arguments(operations, self.minor)
        reader = self.line.answer(self.line.send(
            nfs4.COMPOUND, arguments, version=4))
        return nfs4.compound_results(reader, operations)

    def _new_clientid(self, verifier):
        name = f"wire {self.name}".encode()
        self.clientid, confirm = self._call((
            SETCLIENTID, verifier + opaque(name) + number(nfs4.CALLBACK) +
            opaque(b"tcp") + opaque(b"127.0.0.1.0.1") + number(1),
            lambda reply: (reply.hyper(), reply.fixed(8))))[0]
        self._call((CONFIRM, wide(self.clientid) + confirm, None))

    def _new_session(self, verifier):
        self.clientid, sequence = self._call((
            EXCHANGE_ID, verifier + opaque(f"wire {self.name}".encode()) +
            number(0x10001) + number(0) + number(0),
            lambda reply: (reply.hyper(), reply.number())))[0]
        channel = struct.pack(">IIIIIII", 0, 1 << 21, 1 << 21, 1 << 16, 80,
                              SLOTS, 0)
        self.session = self._call((
            CREATE_SESSION, wide(self.clientid) + struct.pack(
                ">II", sequence, 0) + channel * 2 + number(nfs4.CALLBACK) +
            struct.pack(">II", 1, 0), lambda reply: reply.fixed(16)))[0]
        self.sequences = [0] * SLOTS
        self._call((SEQUENCE, self.next_sequence(0), lambda r: r.skip(36)),
                   (RECLAIM_COMPLETE, number(0), None))
        self.done(0)

    def end(self):
        """Whatever it has open is forgotten."""
        self.renew()
        if self.minor:
            self._call((DESTROY_SESSION, self.session, None))
            self._call((DESTROY_CLIENTID, wide(self.clientid), None))
        self.line.close()

    # --- slots, and the sequences of NFSv4.0's owners

    def next_sequence(self, slot, ahead=1, cached=0):
        """The arguments of a SEQUENCE."""
        return self.session + struct.pack(
            ">IIII", (self.sequences[slot] + ahead) & 0xffffffff, slot,
            SLOTS - 1, cached)

    def done(self, slot):
        """The server has taken the sequence of SLOT."""
        self.sequences[slot] += 1

    def seqid(self, owner, values):
        """What this owner's next request has; each draw is a request."""
        if self.minor:
            return values.number(0)
        self.seqids[owner] = self.seqids.get(owner, 0) + 1
        return values.number(self.seqids[owner])

    def lost(self, seen):
        """The answer says that session or client id are gone."""
        return any(status in (BADSESSION, DEADSESSION, STALE_CLIENTID) or
                   (status == EXPIRED and operation == SEQUENCE)
                   for operation, status in seen)
