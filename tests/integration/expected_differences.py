# SPDX-License-Identifier: LGPL-3.0-or-later
"""Cases that fail with FSAL_CEPH, with CEPH_ASYNC or with both: who does it
right, and by which rule.  docs/comparison.md has this as a table, made by
posix_comparison.py, which fails where a case fails that is not listed here.
"""
from fnmatch import fnmatchcase
from types import SimpleNamespace

OURS = "CEPH_ASYNC"
NEITHER_CEPHFS = "neither (CephFS)"
NEITHER_CLIENT = "neither (Linux' client)"
EXPECTED = (NEITHER_CEPHFS, NEITHER_CLIENT)     # of CEPH_ASYNC to fail

DIFFERENCES = {
    "*write_by_*_clears_set_id": (OURS, (
        "a set-id bit vouches for the content: who writes as a user clears "
        "it (write(2); POSIX lets the server do so, Linux' NFS client "
        "relies on it). FSAL_CEPH writes as root and the bit stays")),
    "truncate_*_by_owner_clears_set_id": (OURS, (
        "the same for truncate() (POSIX: \"may be cleared\"; Linux clears "
        "them). libcephfs does it for others than the owner only")),
    "o_trunc_by_owner_clears_set_id": (OURS, "the same, by open(O_TRUNC)"),
    "create_without_any_permission": (OURS, (
        "the descriptor of a new file can be written to and truncated "
        "whatever its mode (POSIX open(), ftruncate())")),
    "a_symlink_takes_its_name": (OURS, (
        "the name exists (POSIX mkdir(), symlink(), mkfifo(), link()). "
        "libcephfs makes the object at the symlink's end")),
    "rename_of_a_foreign_directory": (OURS, (
        "its \"..\" is written: EACCES where that is not allowed (POSIX "
        "rename(): \"may be required\"; Linux' own file systems require "
        "it)")),
    "times_of_truncate_up": (OURS, (
        "truncate() and ftruncate() mark the mtime in either direction "
        "(POSIX). libcephfs does when the file shrinks")),
    "directory_times_of_rename": (OURS, (
        "rename() marks both directories (POSIX). libcephfs goes on with "
        "what it knew of the one that the name left")),
    "rename_elsewhere_by_another_client": (OURS, (
        "for the same reason the change attribute stands still (RFC 8881, "
        "5.8.1.4: it changes with the object), and other clients list the "
        "name for ever")),
    "link_count_of_a_directory": (OURS, (
        "for the same reason the count of a directory that a sub-directory "
        "left stays too high")),
    "time_before_1970": (OURS, (
        "CephFS keeps 32 bits of seconds; the nearest time is stored, as "
        "the kernel's CephFS client does. FSAL_CEPH stores one of 2102")),
    "time_after_2106": (OURS, (
        "the same; FSAL_CEPH stores a time of 1973")),
    "reading_marks_the_atime": (NEITHER_CEPHFS, (
        "read() marks the atime (POSIX); CephFS never does, by its own "
        "kernel client neither. RFC 8881, 5.8.2.37 leaves it to the "
        "server")),
    "times_of_truncate_to_the_same": (NEITHER_CLIENT, (
        "a truncation to the size it has marks the times (POSIX); Linux "
        "sends no SETATTR for it (/proc/self/mountstats)")),
}


def verdict(name):
    """Who is right and why, or None."""
    for pattern, (right, why) in DIFFERENCES.items():
        if fnmatchcase(name, pattern):
            return SimpleNamespace(pattern=pattern, right=right, why=why)
    return None
