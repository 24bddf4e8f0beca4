# SPDX-License-Identifier: LGPL-3.0-or-later
"""A READ is judged by who asks for it, at the time it is asked."""
import errno
import os
import time
from contextlib import contextmanager

from registry import case, drop_caches, equal, in_child, opened, refused

# Five digits: Ganesha 9.14 reads past a name whose length is a multiple of
# four (name2id) and then, by chance, refuses it with NFS4ERR_BADOWNER.
ONE, OTHER = 47110, 47120
SECRET = b"secret" * 10_000
ROUNDS = 60


def wait_for(path):
    end = time.monotonic() + 30
    while not path.exists():
        if time.monotonic() > end:
            raise AssertionError(f"no {path.name}")
        time.sleep(0.02)


@contextmanager
def signals(d):
    """A folder where both users can leave marks."""
    (d / "marks").mkdir()
    (d / "marks").chmod(0o777)
    yield d / "marks"


# Not NFSv3: there Linux goes on reading, with FSAL_CEPH too, what the server
# refuses to a client that asks as that user (test_access.py).
@case(versions=("4.0", "4.1", "4.2"))
def reading_is_refused_to_who_lost_the_file(d):
    """An open file is given to another user: who has it open reads no more,
    the other does, at the same time and never mixed up."""
    path = d / "file"
    path.write_bytes(SECRET)
    path.chmod(0o600)
    os.chown(path, ONE, ONE)

    with signals(d) as marks:
        def loser():
            with opened(path, os.O_RDONLY | os.O_DIRECT) as fd:
                equal(os.pread(fd, len(SECRET), 0), SECRET, "as its owner")
                (marks / "read").touch()
                wait_for(marks / "given")
                for _ in range(ROUNDS):
                    refused(errno.EACCES, os.pread, fd, len(SECRET), 0)
                (marks / "refused").touch()
                wait_for(marks / "back")
                equal(os.pread(fd, len(SECRET), 0), SECRET, "owner again")

        def owner():
            wait_for(marks / "given")
            with opened(path, os.O_RDONLY | os.O_DIRECT) as fd:
                for _ in range(ROUNDS):
                    equal(os.pread(fd, len(SECRET), 0), SECRET, "new owner")
            (marks / "done").touch()

        def root():
            wait_for(marks / "read")
            os.chown(path, OTHER, OTHER)
            (marks / "given").touch()
            wait_for(marks / "refused")
            wait_for(marks / "done")
            os.chown(path, ONE, ONE)
            (marks / "back").touch()
        together((loser, ONE), (owner, OTHER), (root, 0))


def together(*parts):
    """Each function as its user, all at once."""
    def start(function, uid):
        return lambda: in_child(function, uid=uid or None)
    in_child(*(start(function, uid) for function, uid in parts))


@case()
def reading_by_page_cache_is_refused(d):
    path = d / "file"
    path.write_bytes(SECRET)
    path.chmod(0o600)
    os.chown(path, ONE, ONE)

    def stranger():
        refused(errno.EACCES, os.open, path, os.O_RDONLY)

    def owner():
        equal(path.read_bytes(), SECRET, "for its owner")
    drop_caches()
    in_child(stranger, uid=OTHER)
    in_child(owner, uid=ONE)
    in_child(stranger, uid=OTHER)
