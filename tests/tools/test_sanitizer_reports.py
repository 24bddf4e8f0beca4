# SPDX-License-Identifier: LGPL-3.0-or-later
"""Which of the sanitizers' reports count (tests/sanitize/reports.py)."""
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "sanitize"))

from reports import Reports

PLUGIN = "    #1 casync_close2 fd.c:363 (libfsalceph_async.so+0x40988)"
CORE = "    #1 <null> <null> (libganesha_nfsd.so.9.14+0x16d493)"


def taken(lock, kind, held, frame):
    """LOCK, of that KIND, taken while HELD is."""
    return (f"  Mutex {lock} acquired here while holding mutex {held} in "
            f"thread T57:\n    #0 pthread_{kind} x.cpp:1 "
            f"(libtsan.so.2.0.0+0x57531)\n{frame}\n\n"
            f"  Mutex {held} previously acquired by the same thread here:\n"
            "    #0 pthread_mutex_lock x.cpp:1 (libtsan.so.2.0.0+0x58271)\n"
            f"{CORE}\n")


def inversion(kind, first, second):
    return ("WARNING: ThreadSanitizer: lock-order-inversion (pid=1)\n\n" +
            taken("M1", kind, "M0", first) + "\n" +
            taken("M0", "mutex_lock", "M1", second))


def leak(first, second):
    return ("ERROR: LeakSanitizer: detected memory leaks\n\n"
            "Direct leak of 39 byte(s) in 1 object(s) allocated from:\n"
            "    #0 0x7f strdup x.cpp:617 (libasan.so.8.0.0+0x1)\n"
            f"    #1 0x7f {first}\n    #2 0x7f {second}\n\n")


def test_a_leak_is_that_of_its_first_frame():
    """The plugin is unloaded then.  Ganesha's frames have no frame pointers,
    so what stands behind one of them is guessed."""
    core, unknown = " (libganesha_nfsd.so.9.14+0x881f7)", " (<unknown module>)"
    assert not counts(leak(core, unknown))
    assert counts(leak(unknown, core))


def counts(report):
    return len(Reports(report).counting) == 1


def test_an_inversion_with_the_plugin_counts():
    assert counts(inversion("mutex_lock", PLUGIN, CORE))
    assert counts(inversion("mutex_lock", CORE, PLUGIN))


def test_an_inversion_of_others_does_not():
    assert not counts(inversion("mutex_lock", CORE, CORE))


def test_two_locks_at_one_address_are_no_cycle():
    """M1 is an rwlock here and a mutex there."""
    assert not counts(inversion("rwlock_wrlock", PLUGIN, CORE))
