# SPDX-License-Identifier: LGPL-3.0-or-later
"""nfsload's creates: as many as it says, and none left when it ends."""
import json
import re
import subprocess
import time

import pytest

from lab import SECOND_PORT, SECOND_PSEUDO
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


@pytest.mark.parametrize("option, value, words", [
    ("--probe", "5", "there is no file to probe"),
    ("--nfs", "4", "creates are of NFSv3 only")])
def test_what_creates_cannot_have(option, value, words):
    done = nfsload("--mix", "create=100", option, value)
    assert done.returncode == 2 and words in done.stderr


def test_a_mix_removes_what_it_created(folder, record):
    done = nfsload("--export", f"/ceph/{folder}", "--mix",
                   "read=40,write=20,getattr=30,create=10", "--count", "5000",
                   "--connections", "2", "--depth", "8", "--files", "2",
                   "--file-size", "1M")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    answered = {name: op["answered"] for name, op in report["ops"].items()}
    assert sum(answered.values()) == report["sent"] == 5000
    # Drawn by lot, with a seed that is always the same.
    assert answered["create"] == pytest.approx(500, rel=0.2)
    create = report["ops"]["create"]
    assert create["failed"] == create["lost"] == create["mib_per_s"] == 0
    assert 0 < create["latency_us"]["p50"] <= create["latency_us"]["max"]
    assert numbers(COUNTS, done) == (str(answered["create"]),) * 2
    assert not LEFT.search(done.stderr)
    assert names(f"/ceph/{folder}") == {"nfsload.0": 1 << 20,
                                        "nfsload.1": 1 << 20}
    record(f"nfsload: of 5000 requests {answered}")


def test_a_mix_over_4_0(folder):
    done = nfsload("--nfs", "4", "--export", f"/ceph/{folder}", "--mix",
                   "read=40,write=30,getattr=30", "--count", "5000",
                   "--files", "2", "--file-size", "1M", "--probe", "5")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert sum(op["answered"] for op in report["ops"].values()) == 5000
    assert report["probe"]["answered"] > 0
    assert names(f"/ceph/{folder}") == {"nfsload.0": 1 << 20,
                                        "nfsload.1": 1 << 20}


def test_errors_are_counted(read_only):
    """By their name, each of them."""
    load = ("--mix", "create=100", "--count", "500", *read_only)
    done = nfsload(*load)
    assert done.returncode == 1, done.stderr
    create = json.loads(done.stdout)["ops"]["create"]
    assert create["failed"] == 500
    assert create["answered"] == create["lost"] == 0
    assert create["errors"] == {"NFS3ERR_ROFS": 500}
    assert numbers(COUNTS, done) == ("0", "0")
    assert nfsload("--allow-errors", *load).returncode == 0


def test_what_cannot_be_removed_is_told(folder, lab, second):
    """The export of Ganesha "b" turns read only under the load."""
    second()
    load = subprocess.Popen(
        ["nfsload", "--port", str(SECOND_PORT), "--export",
         f"{SECOND_PSEUDO}/{folder}", "--mix", "create=100", "--warmup", "0",
         "--seconds", "4", "--allow-errors"], text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)
    time.sleep(1)
    lab.run("ganesha", "reload", "--name", "b", "--export-block",
            "Access_Type = RO;")
    out, err = load.communicate(timeout=120)
    create = json.loads(out)["ops"]["create"]
    done = subprocess.CompletedProcess([], load.returncode, out, err)
    assert create["errors"].keys() == {"NFS3ERR_ROFS"}
    assert create["answered"] and not create["lost"]
    made = str(create["answered"])
    assert numbers(COUNTS, done) == (made, "0")
    assert numbers(LEFT, done) == (made, "NFS3ERR_ROFS")
    assert len(names(f"/ceph/{folder}")) == int(made)
