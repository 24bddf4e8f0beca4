# SPDX-License-Identifier: LGPL-3.0-or-later
"""The packages for one Ganesha where another one is that we build for: dpkg
refuses them, and Ganesha refuses a plugin that was forced into it.
"""
import time

import pytest

from lab import LOGS, Log
from machine import PACKAGES, api, command, ganesha, plugins, status

NAME = "nfs-ganesha-ceph-async"
PLUGIN = plugins() / "libfsalceph_async.so"
OURS = """EXPORT { Export_Id = 77; Path = "/"; Pseudo = "/beside";
    Access_Type = RW; Squash = none; FSAL { Name = CEPH_ASYNC; } }"""


def deb(name=NAME):
    found, = (PACKAGES / "deb/this/out").glob(f"{name}_*.deb")
    return found


def built_for():
    version = command("dpkg-deb", "-f", deb(), "Version").strip()
    return version.partition("+ganesha")[2]


def test_they_are_two():
    assert {ganesha(), built_for()} == {"5.9", "9.14"}


@pytest.mark.parametrize("tool", (
    ("apt-get", "install", "-q", "-y"), ("dpkg", "--install")))
@pytest.mark.parametrize("also", ((), (f"{NAME}-compat",)))
def test_the_package_is_refused(tool, also):
    """Both name the version that is missing."""
    before = command("dpkg-query", "-W", "nfs-ganesha*")
    try:
        files = [deb(name) for name in (NAME, *also)]
        said = command(*tool, *files, check=False)
        print(said)
        assert f"nfs-ganesha (<< {built_for()}.~)" in said or \
            f"nfs-ganesha (>= {built_for()})" in said or \
            f"nfs-ganesha (< {built_for()}.~)" in said
        assert "install ok installed" not in command("dpkg", "-s", NAME,
                                                     check=False)
    finally:
        # dpkg has unpacked it by then.
        status("dpkg", "--purge", f"{NAME}-compat", NAME)
    assert command("dpkg-query", "-W", "nfs-ganesha*") == before


def test_the_plugin_is_refused(machine):
    """What dpkg has unpacked, loaded by a Ganesha that serves FSAL_CEPH.

    The plugin for 9.14 needs symbols that 5.9 has not.  So the linker refuses
    it, and 5.9 ends, as with any FSAL that it cannot load.
    """
    assert status("dpkg", "--install", deb()) != 0
    assert PLUGIN.exists()
    log = Log(LOGS / "ganesha-a.log")
    machine.run("ganesha", "restart", "--no-wait", "--append", OURS)
    if ganesha() == "5.9":
        wanted = [r"Could not dlopen module.*libfsalceph_async\.so.* "
                  r"undefined symbol: \w+"]
    else:
        wanted = [rf"version mismatch core = {api(ganesha())}, fsal = "
                  rf"{api(built_for())}",
                  rf"FSAL CEPH_ASYNC \S+ could not be registered: it was "
                  rf"built for FSAL API {api(built_for())} of Ganesha "
                  rf"{built_for()}, this is Ganesha {ganesha()}; install "
                  rf"{NAME} built for this one"]
    end = time.monotonic() + 60
    while not all(log.matching(line) for line in wanted):
        assert time.monotonic() < end, log.text()
        time.sleep(0.1)
    for line in wanted:
        print(log.matching(line)[0])
    if ganesha() != "5.9":
        while not machine.exported("/ceph", 2049):
            assert time.monotonic() < end, log.text()
            time.sleep(0.2)
        assert not machine.exported("/beside", 2049)


def test_gone_and_served_again(machine):
    command("dpkg", "--purge", NAME)
    assert not PLUGIN.exists()
    machine.serve("CEPH", "--append", "")
    assert "all well" in machine.script("sample_io.py", ".=RW", seconds=100)
