# SPDX-License-Identifier: LGPL-3.0-or-later
"""The ways to the files: two gateways, ceph-fuse, Linux' CephFS client.

A way opens a file by name and gives a token for it; the other functions take
the token.  A call returns when the change is acknowledged.  `side` is whose
CephFS client it is: two ways with the same one share a gateway.
"""
import base64
import json
import mmap
import os
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

from lab_program import client_command
from nfs import nfs3, nfs4, rpc
from nfs.xdr import number, opaque, wide

BLOCK = 4096
AGAIN_S = 0.05
PATIENCE_S = 60
NAME_S = 10             # until a name leads to its new file everywhere
BOOT_S = 90
AGAIN = {10008, nfs4.GRACE}     # JUKEBOX, DELAY
# A gateway whose clock has gone forward may have ended its clients' leases:
# with BADSESSION, STALE_CLIENTID, DEADSESSION.
LEASE_OVER = {nfs4.EXPIRED, 10022, 10052, 10078}
FORGIVEN_S = 60


def until_answered(call):
    """The server may ask for patience while its session is lost."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return call()
        except (nfs3.Refused, nfs4.Failed) as err:
            if err.status not in AGAIN or time.monotonic() > end:
                raise
            time.sleep(AGAIN_S)


class Way:
    side = ""
    punches = False

    def __init__(self, name):
        self.name = name

    def find(self, name, fileid):
        """The token of the file that has this name now."""
        end = time.monotonic() + NAME_S
        while True:
            found = self.find_once(name)
            if found and found[1] == fileid:
                return found[0]
            if found:
                self.forget(found[0])
            assert time.monotonic() < end, \
                f"{self.name}: {name} is not file {fileid}, but {found}"
            time.sleep(AGAIN_S)

    def find_once(self, name):
        """Token and fileid, or None."""
        raise NotImplementedError

    def forget(self, token):
        """It is not used any more."""


class Nfs3(Way):
    """One connection for many callers."""

    def __init__(self, side, port, pseudo, folder):
        super().__init__(f"{side} v3")
        self.side = side
        self.root = nfs3.root_of(pseudo, port + 1)
        self.connection = rpc.Concurrent(port)
        try:
            self.folder = nfs3.lookup(self.connection, self.root, folder)
        except nfs3.Refused:
            self.folder = nfs3.make_directory(self.connection, self.root,
                                              folder)

    def _call(self, procedure, arguments):
        return until_answered(lambda: nfs3.call(
            self.connection, procedure, arguments, seconds=PATIENCE_S))

    def find_once(self, name):
        try:
            handle = self._call(nfs3.LOOKUP, nfs3.named(
                self.folder, name)).opaque()
            return handle, nfs3.attributes(self._call(
                nfs3.GETATTR, opaque(handle))).fileid
        except nfs3.Refused as err:
            if err.status not in (nfs4.NOENT, nfs4.STALE):
                raise
        return None

    def create(self, name):
        """Its fileid."""
        handle = nfs3.new_handle(self._call(
            nfs3.CREATE, nfs3.create_arguments(self.folder, name)))
        return nfs3.attributes(self._call(nfs3.GETATTR,
                                          opaque(handle))).fileid

    def remove(self, name):
        self._call(nfs3.REMOVE, nfs3.named(self.folder, name))

    def rename(self, name, new):
        self._call(nfs3.RENAME, nfs3.named(self.folder, name) +
                   nfs3.named(self.folder, new))

    def read(self, token, offset, length):
        return nfs3.found(self._call(
            nfs3.READ, nfs3.read_arguments(token, offset, length)))

    def write(self, token, offset, data, _rng):
        reply = nfs3.written(self._call(
            nfs3.WRITE, nfs3.write_arguments(token, offset, data)))
        assert reply.count == len(data), f"{self.name}: a short WRITE"

    def truncate(self, token, size):
        self._call(nfs3.SETATTR, nfs3.truncation(token, size))


class Nfs4(Way):
    """A client; one request at a time."""

    punches = True

    def __init__(self, side, port, pseudo, folder):
        super().__init__(f"{side} v4.2")
        self.side = side
        self.client = nfs4.Client(port, f"coherence-{time.time_ns()}",
                                  pseudo=pseudo)
        self.folder = self.client.lookup(folder)
        self.renewing = threading.Lock()
        self.stepped = -FORGIVEN_S      # when the gateway's clock was
        self.renewed = 0

    def until_answered(self, call):
        """In a new session, if the old one is lost.  A client has one request
        under way, so no WRITE is overtaken by its own repetition."""
        while True:
            session = self.client.session
            try:
                return until_answered(call)
            except nfs4.Failed as err:
                if err.status not in LEASE_OVER or \
                        time.monotonic() - self.stepped > FORGIVEN_S:
                    raise
            with self.renewing:
                if self.client.session == session:
                    until_answered(self.client.connect)
                    self.renewed += 1

    def find_once(self, name):
        try:
            handle = self.until_answered(
                lambda: self.client.lookup(name, self.folder))
            fileid, _ = self.until_answered(lambda: self.client.get(handle, 20))
        except nfs4.Failed as err:
            if err.status not in (nfs4.NOENT, nfs4.STALE):
                raise
            return None
        return handle, struct.unpack(">Q", fileid)[0]

    def read(self, token, offset, length):
        eof, data = self.until_answered(lambda: self.client.compound(
            nfs4.put(token),
            (25, nfs4.ANONYMOUS + wide(offset) + number(length),
             lambda reply: (bool(reply.number()), reply.opaque())))[-1])
        return data, eof

    def write(self, token, offset, data, _rng):
        count = self.until_answered(
            lambda: self.client.write(token, offset, data))
        assert count == len(data), f"{self.name}: a short WRITE"

    def truncate(self, token, size):
        self.until_answered(lambda: self.client.set(token, size=size))

    def punch(self, token, offset, length):
        self.until_answered(
            lambda: self.client.deallocate(token, offset, length))


class FuseWay(Way):
    """ceph-fuse; half of the writes go by its own cache, and some of those
    are not even synced: CephFS promises coherence without."""

    side = "fuse"
    punches = True

    def __init__(self, top):
        super().__init__("fuse")
        self.top = top

    def find_once(self, name):
        try:
            direct = os.open(self.top / name, os.O_RDWR | os.O_DIRECT)
        except FileNotFoundError:
            return None
        cached = os.open(f"/proc/self/fd/{direct}", os.O_RDWR)
        return (direct, cached), os.fstat(direct).st_ino

    def forget(self, token):
        for fd in token:
            os.close(fd)

    def read(self, token, offset, length):
        with mmap.mmap(-1, length) as room:
            count = os.preadv(token[0], [room], offset)
            return room[:count], count < length

    def write(self, token, offset, data, rng):
        how = rng.choice(("direct", "synced", "cached"))
        with mmap.mmap(-1, len(data)) as room:
            room[:] = data
            count = os.pwritev(token[how != "direct"], [room], offset)
            assert count == len(data), "fuse: a short write"
        if how == "synced":
            os.fsync(token[1])

    def truncate(self, token, size):
        os.ftruncate(token[0], size)

    def punch(self, token, offset, length):
        subprocess.run(
            ["fallocate", "-p", "-o", str(offset), "-l", str(length),
             f"/proc/self/fd/{token[0]}"], check=True, timeout=PATIENCE_S,
            pass_fds=[token[0]], stdin=subprocess.DEVNULL)


class KernelWay(Way):
    """Linux' CephFS client, in user-mode Linux with a clock of its own; what
    it is asked goes to in_kernel.py, one request at a time."""

    side = "kernel"

    def __init__(self, folder):
        super().__init__("kernel")
        self.lock = threading.Lock()
        program = Path(__file__).with_name("in_kernel.py")
        with socket.create_server(("0.0.0.0", 0)) as listener:
            listener.settimeout(BOOT_S)
            self.process = subprocess.Popen(
                client_command("python3", "-B", program,
                               listener.getsockname()[1], folder,
                               timeout=86400, options=(
                                   "--fs", "ceph", "--mem", "256M")),
                cwd="/", stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.socket = listener.accept()[0]
        self.socket.settimeout(PATIENCE_S)
        self.stream = self.socket.makefile("rw", encoding="utf-8")

    def _ask(self, operation, *args):
        with self.lock:
            self.stream.write(json.dumps([operation, *args]) + "\n")
            self.stream.flush()
            error, result = json.loads(self.stream.readline())
        assert not error, f"kernel: {operation}: {error}"
        return result

    def find_once(self, name):
        return self._ask("find", name)

    def forget(self, token):
        self._ask("forget", token)

    def read(self, token, offset, length):
        data = base64.b64decode(self._ask("read", token, offset, length))
        return data, len(data) < length

    def write(self, token, offset, data, _rng):
        self._ask("write", token, offset, base64.b64encode(data).decode())

    def truncate(self, token, size):
        self._ask("truncate", token, size)

    def end(self):
        """It unmounts: a session that stayed would keep what it has."""
        self.stream.close()
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait(60)
