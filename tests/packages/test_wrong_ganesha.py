# SPDX-License-Identifier: LGPL-3.0-or-later
"""Ganeshas that the plugin is not built for refuse it, in words, and serve
their other exports.  They are test builds, by ci/package/wrong-ganesha.sh.

The other export comes first in the file: once an export has failed, whatever
its FSAL, Ganesha 9.14 initialises no FSAL that it has not yet.
"""
import os
import shutil
import time
from pathlib import Path

import pytest

from lab import LOGS, Log
from machine import PACKAGES, api, command, ganesha

WRONG = Path("/wrong")
VERSION = ganesha()
# wrong-ganesha.sh's.
OTHER_VERSION = VERSION.partition(".")[0] + ".99"
CORE = """NFS_CORE_PARAM {
    NFS_Port = 2049; MNT_Port = 2050; NLM_Port = 2051; Rquota_Port = 2052;
    Protocols = 3,4; allow_set_io_flusher_fail = true;
    Plugins_Dir = "%s"; }
NFSv4 { Graceless = true; RecoveryRoot = "/var/lib/casync-wrong"; }
"""
EXPORT = """EXPORT { Export_Id = %d; Path = "%s"; Pseudo = "%s";
    Protocols = 3,4; Access_Type = RW; Squash = none; FSAL { Name = %s; } }
"""
OURS = EXPORT % (1, "/", "/ceph", "CEPH_ASYNC")
OTHER = EXPORT % (88, "/mem", "/mem", "MEM")


@pytest.fixture(scope="module")
def plugin():
    """Of the package, not of a build."""
    where = WRONG / "package"
    shutil.rmtree(where, ignore_errors=True)
    package, = (PACKAGES / "deb/this/out").glob(
        "nfs-ganesha-ceph-async_*.deb")
    command("dpkg-deb", "-x", package, where)
    found, = where.rglob("libfsalceph_async.so")
    return found


@pytest.fixture
def serve(machine, plugin, monkeypatch, tmp_path):
    """Starts that Ganesha with those exports; its log."""
    def start(which, *exports):
        where = WRONG / which
        shutil.copy(plugin, where / "plugins")
        Path("/var/lib/casync-wrong").mkdir(exist_ok=True)
        conf = tmp_path / "wrong.conf"
        conf.write_text(CORE % (where / "plugins") + "".join(exports))
        monkeypatch.setenv("PATH", f"{where / 'bin'}:{os.environ['PATH']}")
        monkeypatch.setenv("LD_LIBRARY_PATH", str(where / "bin"))
        log = Log(LOGS / "ganesha-a.log")
        machine.run("ganesha", "restart", "--no-wait", "--conf", conf)
        end = time.monotonic() + 60
        while not log.matching("NFS SERVER INITIALIZED"):
            assert time.monotonic() < end, log.text()
            time.sleep(0.1)
        return log
    yield start
    monkeypatch.undo()
    machine.run("ganesha", "stop")


def said(log, pattern):
    lines = log.matching(pattern)
    assert lines, f"not in the log: {pattern}\n{log.text()}"
    print(lines[0].partition(" :FSAL :")[2] or lines[0])


def serves_the_other_alone(machine):
    end = time.monotonic() + 30
    while not machine.exported("/mem", 2049):
        assert time.monotonic() < end, machine.log_end()
        time.sleep(0.2)
    assert not machine.exported("/ceph", 2049)


def test_another_api(machine, serve):
    """Ganesha itself refuses it."""
    log = serve("api", OTHER, OURS)
    said(log, rf"version mismatch core = 99\.0, fsal = {api(VERSION)}")
    said(log, rf"FSAL CEPH_ASYNC \S+ could not be registered: it was built for "
              rf"FSAL API {api(VERSION)} of Ganesha (\S+), this is Ganesha \1; "
              rf"install nfs-ganesha-ceph-async built for this one")
    serves_the_other_alone(machine)


def test_another_version_of_the_same_api(machine, serve):
    """We refuse it."""
    log = serve("version", OTHER, OURS)
    said(log, rf"FSAL CEPH_ASYNC \S+: FSAL API {api(VERSION)}, Ganesha "
              rf"{OTHER_VERSION} \(built for {VERSION}\)")
    said(log, rf"FSAL CEPH_ASYNC is refused: it was built for Ganesha "
              rf"{VERSION}, this is Ganesha {OTHER_VERSION}: install "
              rf"nfs-ganesha-ceph-async built for {OTHER_VERSION}, or Ganesha "
              rf"{VERSION}")
    said(log, r"Failed to initialize FSAL \(CEPH_ASYNC\)")
    serves_the_other_alone(machine)


@pytest.mark.parametrize("which", ("api", "version"))
def test_a_refused_one_ends_well(machine, serve, which):
    """Nothing was started, so nothing is torn down; SIGTERM ends it."""
    log = serve(which, OTHER, OURS)
    machine.run("ganesha", "stop", timeout=60)
    assert log.matching("NFS EXIT: regular exit"), log.text()
    assert not log.matching("could not be unregistered"), log.text()
