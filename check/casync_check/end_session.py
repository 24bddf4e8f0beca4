# SPDX-License-Identifier: LGPL-3.0-or-later
"""ganesha-ceph-async-config end-session: what a gateway has left behind.

A gateway of several leaves its CephFS sessions, with their locks, to its
successor.  If there is none, others wait for them until the MDS ends them.
"""
import contextlib
import json
import os
import sys
import threading

PREFIX = "ganesha-"
TIMEOUT_S = 30
OPTIONS = dict.fromkeys(("client_mount_timeout", "rados_mon_op_timeout",
                         "rados_osd_op_timeout"), "10")


class Refused(Exception):
    """What is wrong, and the way out."""


def _answer(status, out, text):
    if status != 0:
        raise Refused(text or os.strerror(-status))
    return json.loads(out or "null")


class Cluster:
    """The MDS of all file systems, as one user."""

    def __init__(self, user, conf):
        # Only this command needs them.
        import cephfs
        import rados
        self.monitors = rados.Rados(rados_id=user, conffile=conf, conf=OPTIONS)
        self.monitors.connect()
        self.client = cephfs.LibCephFS(rados_inst=self.monitors)
        self.client.init()

    def ranks(self):
        """Each rank that an MDS has, as commands name it."""
        dump = _answer(*self.monitors.mon_command(
            json.dumps({"prefix": "fs dump", "format": "json"}), b""))
        return [f"{entry['mdsmap']['fs_name']}:{rank}"
                for entry in dump["filesystems"]
                for rank in entry["mdsmap"]["in"]]

    def _tell(self, rank, command, *filters):
        try:
            return _answer(*self.client.mds_command(rank, json.dumps(
                {"prefix": f"client {command}", "filters": filters,
                 "format": "json"}), ""))
        except Refused as refused:
            raise Refused(f"MDS {rank}: {refused}") from None

    def end(self, rank, name):
        """How many sessions of that name the MDS of a rank has ended."""
        found = self._tell(rank, "ls", f"client_metadata.uuid={name}")
        for session in found:
            self._tell(rank, "evict", f"id={session['id']}")
        return len(found)


def end_sessions(cluster, names):
    """End them; the names that no MDS knows."""
    unknown = []
    ranks = cluster.ranks()
    for name in names:
        ended = [rank for rank in ranks if cluster.end(rank, name)]
        for rank in ended:
            print(f"{name}: ended at MDS {rank}")
        if not ended:
            unknown.append(name)
    return unknown


def _work(arguments, said):
    """Text of an error goes to SAID."""
    try:
        for name in arguments.names:
            if not name.startswith(PREFIX):
                raise Refused(f"{name}: the name of a gateway's session "
                              f"begins with {PREFIX}; Ganesha's log has it")
        cluster = Cluster(arguments.user, arguments.conf)
        said += [f"{name}: no MDS has such a session; it may have ended"
                 for name in end_sessions(cluster, arguments.names)]
    except ImportError as err:
        said.append(f"Python has no module {err.name}: install "
                    f"python3-{err.name}")
    except Refused as refused:
        said.append(str(refused))
    except Exception as err:
        said.append(f"user '{arguments.user}': {err}")
        if type(err).__module__ not in ("cephfs", "rados"):
            raise


def run(arguments):
    """The exit status."""
    said = []
    # An MDS that does not answer keeps the thread, until the process ends.
    thread = threading.Thread(target=_work, args=(arguments, said),
                              daemon=True)
    thread.start()
    thread.join(TIMEOUT_S)
    if thread.is_alive():
        said.append(f"no answer from Ceph within {TIMEOUT_S} s")
    for text in said:
        print(f"ganesha-ceph-async-config: {text}", file=sys.stderr)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    # Without the ends of libcephfs and librados: they may wait for Ceph.
    os._exit(1 if said else 0)
