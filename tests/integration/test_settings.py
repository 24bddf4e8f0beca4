# SPDX-License-Identifier: LGPL-3.0-or-later
"""Cases of client/ again, with settings of Ganesha or of the plugin that
make other code answer.
"""
import time

import pytest

import all_cases  # noqa: F401  (registers the cases)
from batch import Batch
from nfs import nfs4
from nfs.xdr import number, wide
from registry import CASES

EOF = [name for name in CASES if name.startswith("end_of_file")]
ERRORS = [name for name in CASES if name.startswith("errors_of")]
READING = [name for name, one in CASES.items() if
           name.startswith("reading_") and one.module == "case_access"]


def run(lab, version, names, *options):
    """Each of NAMES with that setting; all that failed are told of."""
    lab.ganesha("restart", "--fsal", "CEPH_ASYNC", *options)
    names = [name for name in names if version in CASES[name].versions]
    assert names
    batch = Batch(lab, version, names)
    failed = {name: why for name in names if (why := batch.outcome(name))}
    assert not failed, "\n".join(f"{name}: {why}"
                                 for name, why in failed.items())


@pytest.mark.parametrize("version", ("3", "4.2"))
def test_nobody_but_us_tells_the_end_of_a_file(lab, version):
    """Ganesha does not look at the size itself: end_of_file is ours."""
    run(lab, version, EOF, "--core", "Getattrs_In_Complete_Read = false;")


SECOND = """EXPORT {
    Export_Id = 71; Path = "/"; Pseudo = "/second"; Protocols = 4;
    Access_Type = RW; Squash = none; SecType = sys; Transports = TCP;
    Attr_Expiration_Time = 60; FSAL { Name = CEPH_ASYNC; }
}"""


@pytest.mark.parametrize("looks", ("true", "false"))
def test_a_file_does_not_end_where_it_ended(lab, looks):
    """It was extended through another export.  Ganesha's own look at the size
    is at its cache: this is why the samples turn it off."""
    lab.ganesha("restart", "--fsal", "CEPH_ASYNC", "--append", SECOND,
                "--core", f"Getattrs_In_Complete_Read = {looks};")
    name = f"extended-{time.time_ns()}"
    writer = nfs4.Client(2049, name)
    reader = nfs4.Client(2049, f"reader-{name}", pseudo="/second")
    file = writer.open(name, create=nfs4.UNCHECKED)
    file.write(0, b"1" * 4096)
    handle = reader.lookup(name)
    assert reader.change_and_size(handle)[1] == 4096
    file.write(4096, b"2" * 4096)
    ended = reader.compound(nfs4.put(handle), (
        25, nfs4.ANONYMOUS + wide(0) + number(4096),
        lambda reply: (bool(reply.number()), reply.opaque())[0]))[-1]
    assert ended == (looks == "true")
    writer.leave()
    reader.leave()


@pytest.mark.parametrize("version", ("4.2",))
def test_access_is_checked_after_the_read(lab, version):
    """In the answer, on our thread: with the requester's credentials."""
    run(lab, version, READING, "--export-block",
        "Read_Access_Check_Policy = post;")


@pytest.mark.parametrize("version", ("3", "4.2"))
@pytest.mark.parametrize("mode", ("fdatasync", "full"))
def test_errors_in_every_mode(lab, version, mode):
    run(lab, version, ERRORS, "--export", f"Stable_Write = {mode};")
