# SPDX-License-Identifier: LGPL-3.0-or-later
"""The source tarball of ci/dist.sh."""
import tarfile

import pytest

from machine import PACKAGES


@pytest.fixture(scope="module")
def members():
    found = list((PACKAGES / "source-1").glob("*.tar.gz"))
    assert len(found) == 1, found
    with tarfile.open(found[0]) as tarball:
        members = tarball.getmembers()
    top = members[0].name
    assert all(one.name == top or one.name.startswith(f"{top}/")
               for one in members)
    return {one.name[len(top) + 1:]: one for one in members}


def test_measurements_are_not_in_it(members):
    assert "CMakeLists.txt" in members
    assert not [name for name in members if name.startswith("results")]


def test_what_git_does_not_have_is_not_in_it(members):
    assert not [name for name in members
                if name.split("/")[0] in {".git", "build"}
                or "__pycache__" in name]


def test_what_packages_are_made_of_is_at_the_top(members):
    assert {"debian/rules", "debian/changelog",
            "nfs-ganesha-ceph-async.spec"} <= set(members)


def test_nothing_says_where_and_when_it_was_packed(members):
    assert len({one.mtime for one in members.values()}) == 1
    assert {(one.uid, one.gid, one.uname, one.gname)
            for one in members.values()} == {(0, 0, "", "")}
    assert list(members) == sorted(
        members, key=lambda name: name.split("/"))
