# SPDX-License-Identifier: LGPL-3.0-or-later
"""Files of other layouts than CephFS' default one."""
import os

from server_side import get_xattr, set_xattr
from case_data import against_model
from case_eof import reads_around
from registry import MIB, case, cold, drop_caches, equal, opened, write_at

KIB = 1 << 10
VERSIONS = ("3", "4.2")

# name: stripe unit, stripe count, object size
LAYOUTS = {
    "object_4m": (4 * MIB, 1, 4 * MIB),
    "object_1m": (MIB, 1, MIB),
    "unit_64k_times_4": (64 * KIB, 4, MIB),
    "unit_1m_times_2": (MIB, 2, 4 * MIB),
}
HOW = {"buffered": 0, "direct": os.O_DIRECT}


def words(layout):
    return ("stripe_unit={} stripe_count={} object_size={}"
            .format(*layout))


def lay_out(d, layout):
    """New files in D get that layout; proved by the first."""
    set_xattr(d, "ceph.dir.layout", words(layout))
    (d / "first").touch()
    said = get_xattr(d / "first", "ceph.file.layout")
    if not said.startswith(words(layout)):
        raise AssertionError(f"layout is {said}, wanted {words(layout)}")


def holes(d, layout, flags):
    """A byte at some borders of stripes and objects, holes of whole objects
    between them; read in pieces that lie across many borders."""
    unit, count, object_size = layout
    period = count * object_size
    end = 5 * period + unit + 3
    model = bytearray(end)
    with opened(d / "holes", os.O_RDWR | os.O_CREAT | flags) as fd:
        for offset in (0, unit - 1, unit, period - 1, 3 * period,
                       3 * period + unit, end - 1):
            write_at(fd, b"\x5a", offset)
            model[offset] = 0x5a
        os.fsync(fd)
        drop_caches()
        for step in (MIB, 3 * unit // 2 + 1):
            for offset in range(0, end, step):
                equal(os.pread(fd, step, offset),
                      bytes(model[offset:offset + step]),
                      f"{step} bytes at {offset}")
    equal(cold(d / "holes"), bytes(model), "the whole file")


def odd_ends(d, layout, flags):
    unit, count, object_size = layout
    for border in (unit, count * unit, object_size, count * object_size):
        for size in (border - 1, border, border + 1):
            data = os.urandom(size)
            (d / "end").write_bytes(data)
            drop_caches()
            equal(os.stat(d / "end").st_size, size, "size")
            with opened(d / "end", os.O_RDONLY | flags) as fd:
                reads_around(fd, data, "layout")


def register(name, how):
    layout, flags = LAYOUTS[name], HOW[how]

    def run(d):
        lay_out(d, layout)
        against_model(d, "file", [flags], seed=len(name), rounds=80)
        holes(d, layout, flags)
        odd_ends(d, layout, flags)
    run.__name__ = f"layout_{name}_{how}"
    case(versions=VERSIONS)(run)


for one in LAYOUTS:
    for kind in HOW:
        register(one, kind)
