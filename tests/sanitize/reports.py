# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a sanitizer wrote about a ganesha.nfsd of which only the plugin is
instrumented.

AddressSanitizer, UBSan: every report counts, whoever is to blame.

LeakSanitizer: the same, but for a daemon that had to end in the midst of its
work.  Ganesha then leaves requests behind, and the open states of a client;
what it allocated itself, and the states, which it has the plugin allocate,
are kept apart.

ThreadSanitizer sees all locks, threads and allocations of the process, for
it takes the place of libc's functions, but memory accesses and atomics only
in the plugin.  Libraries that order their accesses by atomics of their own
look racy to it, hence a report counts when what it complains of was done by
the plugin:

- a data race when both accesses were; a race of the plugin with, say, a
  free() of Ganesha's may be ordered by an atomic that was not seen.  (Where
  it is not, it is a use after free, which AddressSanitizer sees.)
- an order of locks that is not kept, when any stack is the plugin's; but not
  when a lock of the cycle is a mutex in one stack and an rwlock in another.
  These are two, one after the other at the same address.
- anything else (misuse of a mutex, a thread not joined) when any of the stacks
  it is made of is the plugin's.

What does not count is kept in the logs, and how much of it there was is
said.
"""
import re
import subprocess

PLUGIN = "libfsalceph_async.so"
FRAME = re.compile(r"^ +#\d+ .* \((?:[^ ()]*/)?([^/ ()]+)\+0x[0-9a-f]+\)",
                   re.M)
RUNTIME = re.compile(r"lib(tsan|asan|ubsan)\.so")
GANESHA = re.compile(r"lib(ganesha_nfsd|ntirpc)\.so")
UNKNOWN_FIRST = re.compile(r"^ +#1 .*<unknown module>", re.M)
TOTAL = re.compile(r"ThreadSanitizer: reported \d+ warnings")
TAKEN = re.compile(r"Mutex (M\d+) (?:previously )?acquired .*\n"
                   r" +#0 pthread_(mutex|rwlock|spin)")
# What only describes the places, locks and threads of a report.
ASIDE = re.compile(r" *(Location is|Mutex M\d+ .* created at|"
                   r"Thread T\d+ .* created by|SUMMARY)")


class Reports:
    """The reports in TEXT: those that count, leaks that only count where
    nothing was under way, and the others."""

    def __init__(self, text):
        self.counting = []
        self.ganeshas_leaks = []
        self.others = []
        for report in re.split(r"^=+$", text, flags=re.M):
            if "LeakSanitizer: detected" in report:
                self._sort_leaks(report)
            elif "WARNING: ThreadSanitizer" in report:
                (self.counting if _plugins_fault(report)
                 else self.others).append(report)
            elif report.strip() and not TOTAL.fullmatch(report.strip()):
                self.counting.append(report)

    def _sort_leaks(self, report):
        for leak in report.split("\n\n"):
            if FRAME.search(leak):
                (self.ganeshas_leaks if _ganeshas_own(leak)
                 else self.counting).append(leak)


def _ganeshas_own(leak):
    # The plugin is unloaded by then.  Further down the frames are guessed.
    if UNKNOWN_FIRST.search(leak):
        return False
    state = leak.startswith("Indirect") and " casync_fd_alloc_state " in leak
    return state or GANESHA.match(_top(leak) or "") is not None


def _plugins_fault(report):
    ours = [_top(stack) == PLUGIN for stack in _stacks(report)]
    if "data race" in report:
        return bool(ours) and all(ours)
    return any(ours) and not _reuses_an_address(report)


def _reuses_an_address(report):
    kinds = {}
    for lock, kind in TAKEN.findall(report):
        kinds.setdefault(lock, set()).add(kind)
    return any(len(kind) > 1 for kind in kinds.values())


def _stacks(report):
    """The stacks that a report is made of."""
    stacks = [part for part in report.split("\n\n") if FRAME.search(part)]
    made_of = [part for part in stacks if not ASIDE.match(part.lstrip("\n"))]
    return made_of or stacks


def _top(stack):
    """The library that made the call or the access."""
    for library in FRAME.findall(stack):
        if not RUNTIME.match(library):
            return library
    return None


def with_lines(text, plugin, base):
    """TEXT with the lines of PLUGIN's source: it is unloaded from BASE by
    the time that leaks are looked for."""
    def line_of(match):
        offset = int(match[1], 16) - base
        if not 0 <= offset < plugin.stat().st_size:
            return match[0]
        # A return address: the call is before it.
        done = subprocess.run(
            ["addr2line", "-fse", str(plugin), hex(offset - 1)], text=True,
            stdout=subprocess.PIPE, check=True, timeout=60)
        where = " ".join(done.stdout.split())
        return f"in {where} ({plugin.name}+{offset:#x})"
    return re.sub(r"0x([0-9a-f]+)  \(<unknown module>\)", line_of, text)
