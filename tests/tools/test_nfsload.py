# SPDX-License-Identifier: LGPL-3.0-or-later
"""nfsload's creates: as many as it says, and none left when it ends."""
import json
import re
import subprocess
import time

import dbus
import pytest

import bus
from lab import REFERENCES, SECOND_PORT, SECOND_PSEUDO
from nfs import nfs4

pytestmark = pytest.mark.measures

COUNTS = re.compile(r"^nfsload: created (\d+) files, removed (\d+)$", re.M)
LEFT = re.compile(r"^nfsload: (\d+) files are left as \S+: (\S+)$", re.M)


def nfsload(*args):
    return subprocess.run(["nfsload", *args], text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=120,
                          capture_output=True)


def names(export, port=2049):
    """name → size, of a directory."""
    done = subprocess.run(
        ["nfs-ls", f"nfs://127.0.0.1{export}?version=3&nfsport={port}"
         f"&mountport={port + 1}"], text=True, check=True, timeout=60,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    rows = [line.split() for line in done.stdout.splitlines()]
    return {row[-1]: int(row[-2]) for row in rows}


def numbers(pattern, done):
    """What that line on stderr says; it is there once."""
    found = pattern.findall(done.stderr)
    assert len(found) == 1, done.stderr
    return found[0]


def open_states():
    """Of NFSv4, in Ganesha "a"."""
    answer = bus.call("ShowFDUsage", "exportstats")
    words = [str(word) for part in answer if isinstance(part, dbus.Struct)
             for word in part]
    return int(words[words.index("NFSv4 open state count") + 1])


@pytest.fixture
def folder(lab):
    """The name of an empty directory of Ganesha "a"."""
    name = f"nfsload-{time.time_ns()}"
    client = nfs4.Client(2049, name)
    client.create(nfs4.DIRECTORY, name)
    client.leave()
    return name


@pytest.fixture
def read_only(lab, second):
    second(export_block="Access_Type = RO;")
    return "--port", str(SECOND_PORT), "--export", SECOND_PSEUDO


@pytest.mark.parametrize("mix, words", [
    ("create", "mix: read=, write=, getattr= or create="),
    ("mkdir=100", "mix: read=, write=, getattr= or create="),
    ("create=101", "'101' is not a number from 0 to 100"),
    ("create=-1", "'-1' is not a number from 0 to 100"),
    ("write=100,create=10", "mix: 110 percent in all"),
    ("read=40,write=20,getattr=30,create=9", "mix: 99 percent in all")])
def test_a_bad_mix_is_refused(mix, words):
    done = nfsload("--mix", mix)
    assert done.returncode == 2 and words in done.stderr
    assert done.stdout == ""


def test_a_file_to_probe_there_is_not():
    done = nfsload("--mix", "create=100", "--probe", "5")
    assert done.returncode == 2
    assert "there is no file to probe" in done.stderr


@pytest.mark.parametrize("vers", ["3", "4"])
def test_as_many_files_as_reported(folder, vers):
    opened = open_states()
    done = nfsload("--nfs", vers, "--export", f"/ceph/{folder}", "--mix",
                   "create=100", "--count", "300", "--connections", "2",
                   "--depth", "8", "--keep-created")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    create = report["ops"]["create"]
    assert create["answered"] == report["sent"] == 300
    assert create["failed"] == create["lost"] == create["mib_per_s"] == 0
    assert 0 < create["latency_us"]["p50"] <= create["latency_us"]["max"]
    kept = re.search(r"created 300 files, kept as (\S+)\.\*$", done.stderr,
                     re.M)
    assert names(f"/ceph/{folder}") == {
        f"{kept[1]}.{number}": 0 for number in range(300)}
    # Closed; meanwhile the leases of others may have ended.
    assert open_states() <= opened


@pytest.mark.parametrize("vers", ["3", "4"])
def test_a_mix_removes_what_it_created(folder, vers, record):
    done = nfsload("--nfs", vers, "--export", f"/ceph/{folder}", "--mix",
                   "read=40,write=20,getattr=30,create=10", "--count", "5000",
                   "--connections", "2", "--depth", "8", "--files", "2",
                   "--file-size", "1M")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    answered = {name: op["answered"] for name, op in report["ops"].items()}
    assert sum(answered.values()) == 5000
    # Drawn by lot, with a seed that is always the same.
    assert answered["create"] == pytest.approx(500, rel=0.2)
    assert numbers(COUNTS, done) == (str(answered["create"]),) * 2
    assert not LEFT.search(done.stderr)
    assert names(f"/ceph/{folder}") == {"nfsload.0": 1 << 20,
                                        "nfsload.1": 1 << 20}
    record(f"nfsload, NFSv{vers}: of 5000 requests {answered}")


@pytest.mark.parametrize("vers", ["3", "4"])
def test_errors_are_counted(read_only, vers):
    """By their name, each of them; over 4.0 the seqids stay right."""
    load = ("--nfs", vers, "--mix", "create=100", "--count", "500",
            *read_only)
    done = nfsload(*load)
    assert done.returncode == 1, done.stderr
    create = json.loads(done.stdout)["ops"]["create"]
    assert create["failed"] == 500
    assert create["answered"] == create["lost"] == 0
    assert create["errors"] == {f"NFS{vers}ERR_ROFS": 500}
    assert numbers(COUNTS, done) == ("0", "0")
    assert nfsload("--allow-errors", *load).returncode == 0


def under_reloads(lab, folder, vers, *access):
    """A load on Ganesha "b", whose export gets those Access_Types, one a
    second; (create of its report, its end)."""
    lab.expected.append(REFERENCES)     # one FSAL reference a reload is left
    load = subprocess.Popen(
        ["nfsload", "--port", str(SECOND_PORT), "--export",
         f"{SECOND_PSEUDO}/{folder}", "--nfs", vers, "--mix", "create=100",
         "--warmup", "0", "--seconds", str(3 + len(access)),
         "--allow-errors"], text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for kind in access:
        time.sleep(1)
        lab.run("ganesha", "reload", "--name", "b", "--export-block",
                f"Access_Type = {kind};")
    out, err = load.communicate(timeout=120)
    return (json.loads(out)["ops"]["create"],
            subprocess.CompletedProcess([], load.returncode, out, err))


@pytest.mark.parametrize("vers", ["3", "4"])
def test_what_cannot_be_removed_is_told(folder, lab, second, vers):
    """The export turns read only under the load."""
    second()
    create, done = under_reloads(lab, folder, vers, "RO")
    assert create["errors"].keys() == {f"NFS{vers}ERR_ROFS"}
    assert create["answered"] and not create["lost"]
    made = str(create["answered"])
    assert numbers(COUNTS, done) == (made, "0")
    assert numbers(LEFT, done) == (made, f"NFS{vers}ERR_ROFS")
    assert len(names(f"/ceph/{folder}")) == int(made)


def test_open_owners_do_not_stay_out_of_step(folder, lab, second):
    """Ganesha gives no seqid to an OPEN on a read only export."""
    second()
    create, done = under_reloads(lab, folder, "4", "RO", "RW")
    assert create["errors"].keys() == {"NFS4ERR_ROFS"}
    made, removed = map(int, numbers(COUNTS, done))
    # What is answered behind the end of the measurement is not counted.
    assert made == removed >= create["answered"] > 0
    assert names(f"/ceph/{folder}") == {}
