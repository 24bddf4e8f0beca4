# SPDX-License-Identifier: LGPL-3.0-or-later
"""Extended attributes (RFC 8276): CephFS' own of the name space "user."."""
import errno
import os

from server_side import ceph_client, ceph_path, get_xattr, set_xattr
from case_access import ONE, OTHER
from registry import case, drop_caches, equal, in_child, refused

LARGEST = 8191      # Ganesha's core decodes no longer one (xdr_utf8string)


def names(path):
    return sorted(name for name in os.listxattr(path, follow_symlinks=False)
                  if name.startswith("user."))


def both_kinds(d):
    (d / "file").touch()
    (d / "folder").mkdir()
    return d / "file", d / "folder"


@case(versions=("4.2",))
def xattrs_are_set_and_gone(d):
    for path in both_kinds(d):
        equal(names(path), [], "names at first")
        os.setxattr(path, "user.colour", b"red")
        os.setxattr(path, "user.nothing", b"")
        os.setxattr(path, "user.binary", bytes(range(256)))
        os.setxattr(path, "user.colour", b"a longer red")
        drop_caches()
        equal(names(path), ["user.binary", "user.colour", "user.nothing"],
              "names")
        equal(os.getxattr(path, "user.colour"), b"a longer red", "value")
        equal(os.getxattr(path, "user.nothing"), b"", "empty value")
        equal(os.getxattr(path, "user.binary"), bytes(range(256)), "binary")
        os.removexattr(path, "user.colour")
        refused(errno.ENODATA, os.getxattr, path, "user.colour")
        refused(errno.ENODATA, os.removexattr, path, "user.colour")
        drop_caches()
        equal(names(path), ["user.binary", "user.nothing"], "names left")


@case(versions=("4.2",))
def xattrs_created_and_replaced(d):
    for path in both_kinds(d):
        refused(errno.ENODATA, os.setxattr, path, "user.x", b"1",
                os.XATTR_REPLACE)
        os.setxattr(path, "user.x", b"2", os.XATTR_CREATE)
        refused(errno.EEXIST, os.setxattr, path, "user.x", b"3",
                os.XATTR_CREATE)
        os.setxattr(path, "user.x", b"4", os.XATTR_REPLACE)
        drop_caches()
        equal(os.getxattr(path, "user.x"), b"4", "value")


@case(versions=("4.2",))
def xattrs_many_and_long(d):
    path = d / "file"
    path.touch()
    wanted = sorted(f"user.{n:03}-{'n' * 60}" for n in range(300))
    for name in wanted:
        os.setxattr(path, name, b"v")
    longest = "user." + "l" * 250
    os.setxattr(path, longest, b"long name")
    drop_caches()
    equal(names(path), wanted + [longest], "all names")
    equal(os.getxattr(path, longest), b"long name", "the longest's value")
    refused(errno.ERANGE, os.setxattr, path, longest + "l", b"too long")


@case(versions=("4.2",))
def xattrs_large(d):
    path = d / "file"
    path.touch()
    value = os.urandom(LARGEST)
    os.setxattr(path, "user.large", value)
    drop_caches()
    equal(os.getxattr(path, "user.large"), value, "value")
    refused((errno.E2BIG, errno.EIO), os.setxattr, path, "user.larger",
            value + b"1")
    # what is larger came past NFS
    set_xattr(path, "user.other", "o" * (LARGEST + 2))
    drop_caches()
    # Linux' word for NFS4ERR_XATTR2BIG (test_xattrs.py)
    refused(errno.EIO, os.getxattr, path, "user.other")
    equal(names(path), ["user.large", "user.other"], "names")


@case(versions=("4.2",))
def xattrs_of_others(d):
    path = d / "file"
    path.touch()
    os.setxattr(path, "user.x", b"root's")
    path.chmod(0o644)

    def read_only():
        equal(os.getxattr(path, "user.x"), b"root's", "value")
        equal(names(path), ["user.x"], "names")
        refused((errno.EACCES, errno.EPERM), os.setxattr, path, "user.x",
                b"mine")
        refused((errno.EACCES, errno.EPERM), os.removexattr, path, "user.x")

    def nothing():
        refused(errno.EACCES, os.getxattr, path, "user.x")
        refused((errno.EACCES, errno.EPERM), os.setxattr, path, "user.y",
                b"mine")

    def owner():
        os.setxattr(path, "user.x", b"mine")
    in_child(read_only, uid=ONE)
    path.chmod(0o600)
    drop_caches()
    in_child(nothing, uid=ONE)
    os.chown(path, OTHER, OTHER)
    in_child(owner, uid=OTHER)
    drop_caches()
    equal(os.getxattr(path, "user.x"), b"mine", "the new owner's value")


@case(versions=("4.2",))
def xattrs_are_cephs(d):
    path = d / "file"
    path.touch()
    os.setxattr(path, "user.by-nfs", b"seen")
    equal(get_xattr(path, "user.by-nfs"), "seen", "through CephFS")
    set_xattr(path, "user.by-ceph", "seen too")
    set_xattr(path, "user.by-nfs", "changed")
    drop_caches()
    equal(names(path), ["user.by-ceph", "user.by-nfs"], "names")
    equal(os.getxattr(path, "user.by-ceph"), b"seen too", "Ceph's")
    equal(os.getxattr(path, "user.by-nfs"), b"changed", "changed by Ceph")
    with ceph_client() as fs:
        fs.removexattr(ceph_path(path), "user.by-ceph")
    drop_caches()
    refused(errno.ENODATA, os.getxattr, path, "user.by-ceph")
