# SPDX-License-Identifier: LGPL-3.0-or-later
"""Ganesha's methods on D-Bus.

Over a connection of its own each time: the shared one of dbus-python dies
with the daemon of the bus, which ends when a test starts another lab.
"""
import dbus


def call(method, interface, *args, of="ExportMgr", timeout=60):
    connection = dbus.SystemBus(private=True)
    try:
        found = connection.get_object("org.ganesha.nfsd",
                                      f"/org/ganesha/nfsd/{of}")
        return found.get_dbus_method(method, f"org.ganesha.nfsd.{interface}")(
            *args, timeout=timeout)
    finally:
        connection.close()
