# SPDX-License-Identifier: LGPL-3.0-or-later
"""Kerberos: a real KDC, Linux' own client, two users."""
import json

import kerberos
from lab import SECOND_PORT
from lab_program import LOGS, Log
import pytest
import test_samples

EACCES, EKEYEXPIRED = 13, 127
ALICE, BOB = kerberos.USERS["alice"], kerberos.USERS["bob"]
NOBODY = 2**32 - 2
# What a mount by sys may get: nothing, or what the server wants.
NOT_SYS = (None, "krb5", "krb5i", "krb5p")
# docs/security.md: without it a line of the log for nearly each request.
QUIET = "LOG { COMPONENTS { IDMAPPER = MAJ; } }\n"


prepared = test_samples.prepared


@pytest.fixture(scope="module")
def kdc():
    running = kerberos.Kdc()
    yield running
    running.end()


def export(squash="none", fsal="CEPH_ASYNC"):
    return ('EXPORT { Export_Id = 100; Path = "/kerberos"; Pseudo = "/krb"; '
            f"Protocols = 4; Access_Type = RW; Squash = {squash}; "
            "SecType = krb5, krb5i, krb5p; Transports = TCP; "
            f"Attr_Expiration_Time = 0; FSAL {{ Name = {fsal}; }} }}")


def start(cluster, second, fsal="CEPH_ASYNC", **options):
    cluster.client("sh", "-c", "mkdir -p /mnt/nfs/kerberos; "
                   "chmod 777 /mnt/nfs/kerberos; rm -f /mnt/nfs/kerberos/*")
    second(fsal=fsal,
           append=[kerberos.ganesha_blocks(), export(fsal=fsal, **options)],
           nfsv4=f'IdmapConf = "{kerberos.IDMAP_CONF}";')


def seen_by(cluster, flavour, *steps):
    said = cluster.script("kerberos.py", flavour, str(SECOND_PORT), "/krb",
                          str(kerberos.CLIENT_KEYTAB), kerberos.PASSWORD,
                          *steps, name="b", seconds=240)
    return json.loads(said.splitlines()[-1])


STEPS = ("by_sys", "data", "strangers", "root")


def check_users_and_data(seen):
    assert seen["by_sys"] in NOT_SYS, seen
    data = seen["data"]
    assert data["same"] == [True] * 3 and data["odd"][0] == 0, data
    assert data["owner"] == [ALICE, ALICE], data
    strangers = seen["strangers"]
    for who in ("without a ticket", "bob"):
        status, said = strangers[who]
        assert status == 1 and "Permission denied" in said, strangers
    assert strangers["his"] == BOB
    # host/... is root for Ganesha, and the export does not squash.
    assert seen["root"] == {"touch": [0, ""], "uid": 0, "read": 0}


@pytest.mark.parametrize("flavour", ["krb5", "krb5i", "krb5p"])
def test_users_and_data(cluster, second, kdc, flavour):
    start(cluster, second)
    check_users_and_data(seen_by(cluster, flavour, *STEPS))


@pytest.mark.evidence
def test_fsal_ceph_gives_the_same(cluster, second, kdc):
    start(cluster, second, fsal="CEPH")
    check_users_and_data(seen_by(cluster, "krb5i", *STEPS))


@pytest.mark.parametrize("squash, alice", [("Root_Squash", ALICE),
                                           ("All_Squash", NOBODY)])
def test_squash(cluster, second, kdc, squash, alice):
    """The machine's credential is root's: it is squashed as root is."""
    start(cluster, second, squash=squash)
    seen = seen_by(cluster, "krb5", "squashed")["squashed"]
    assert seen == {"alice": alice, "root": NOBODY}


def test_the_sample(lab, prepared, kdc):
    """config/kerberos.conf, with the names and paths of here."""
    path = prepared(test_samples.KERBEROS)
    text = path.read_text(encoding="utf-8")
    for theirs, here in (("nfs@gateway.example.com", "nfs@lab"),
                         ("/etc/krb5.keytab", kerberos.SERVER_KEYTAB),
                         ("/etc/idmapd.conf", kerberos.IDMAP_CONF)):
        assert text.count(f'= "{theirs}"') == 1, theirs
        text = text.replace(f'= "{theirs}"', f'= "{here}"')
    path.write_text(text + QUIET, encoding="utf-8")
    log = Log(LOGS / "ganesha-a.log")
    test_samples.serve(lab, path)
    said = lab.script("kerberos.py", "krb5p", "2049", "/projects",
                      str(kerberos.CLIENT_KEYTAB), kerberos.PASSWORD,
                      "by_sys", "data", "squashed", seconds=240)
    seen = json.loads(said.splitlines()[-1])
    assert seen["by_sys"] in NOT_SYS, seen
    assert seen["data"]["same"] == [True] * 3, seen
    assert seen["squashed"] == {"alice": ALICE, "root": NOBODY}, seen
    assert not log.matching("Unsupported code path")


def test_a_ticket_ends_and_a_new_one_goes_on(cluster, second, kdc, record):
    start(cluster, second)
    seen = seen_by(cluster, "krb5i", "expired")["expired"]
    record(f"an expired ticket: {seen}")
    assert seen["first"][0] == 0
    assert seen["ended"][0] in (EACCES, EKEYEXPIRED), seen
    assert seen["ended"][1] < 30, seen
    assert seen["again"][-1][0] == 0, seen
    assert seen["content"] == "0000000000000001"
