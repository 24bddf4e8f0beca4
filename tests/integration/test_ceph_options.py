# SPDX-License-Identifier: LGPL-3.0-or-later
"""Options of Ceph's client that the plugin sets for its mounts, as the
client's own admin socket tells them.
"""
import json
from pathlib import Path

import pytest

from lab_program import ceph

SOCKETS = Path("/var/lib/casync-lab/ceph/run")


def option(lab, name):
    """What the mount of Ganesha a has."""
    pid = lab.stat()["ganesha"]["a"]["pid"]
    found = list(SOCKETS.glob(f"client.admin.{pid}.*.asok"))
    assert len(found) == 1, found
    return json.loads(ceph("--admin-daemon", str(found[0]), "config", "get",
                           name))[name]


@pytest.fixture
def central():
    """Sets an option in the monitors' configuration, for the test."""
    names = []

    def put(name, value):
        names.append(name)
        ceph("config", "set", "client", name, value)
    yield put
    for name in names:
        ceph("config", "rm", "client", name)


def test_debug_messages_are_off(lab):
    lab.ganesha("restart", "--fsal", "CEPH_ASYNC")
    assert option(lab, "debug_client") == "0/0"


def test_debug_messages_that_the_administrator_wants(lab, central):
    central("debug_client", "1/3")
    lab.ganesha("restart", "--fsal", "CEPH_ASYNC")
    assert option(lab, "debug_client") == "1/3"


def test_no_object_cache_whatever_is_configured(lab, central):
    central("client_oc", "true")
    lab.ganesha("restart", "--fsal", "CEPH_ASYNC")
    assert option(lab, "client_oc") == "false"
