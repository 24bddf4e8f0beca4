# SPDX-License-Identifier: LGPL-3.0-or-later
"""The ganesha.nfsd that is sent wrong requests: with the installed plugin, or
with one that a sanitizer watches; started again when it has ended.

KNOWN has the faults of Ganesha's core, by words of a sanitizer's report or of
a backtrace: they are counted and told of, and fail nothing.
"""
import collections
import re
import subprocess
from pathlib import Path

from daemon import Daemon
from lab import LOGS, Lab, Log
from reports import PLUGIN

TOP = Path(__file__).resolve().parents[2]
SANITIZERS = {"address": "address,undefined", "thread": "thread"}
BUILD_S = 1200
# Ganesha's own caches are full within a minute, so that what else grows is
# seen: 100,000 entries (5.7 KiB each, with libcephfs' and ours), and the
# answers for connections that were closed in the last 10 minutes.
SMALL_CACHE = "MDCACHE { Entries_HWMark = 2000; }"
SHORT_MEMORY = "DRC_Recycle_Hiwat = 8; DRC_TCP_Recycle_Expire_S = 10;"
END_S = 90
KNOWN = {
    r"[ #\d]+ (0x\S+ in )?memcmp\b[^\n]*\n( +#\d+[^\n]* memcmp [^\n]*\n)*"
    r" +#\d+ [^\n]*libganesha_nfsd":
        "VERIFY and NVERIFY compare past the end of what the client sent",
    r"#0 (0x\S+ in )?memcpy\b[^\n]*\n( +#\d+ memcpy [^\n]*\n)*"
    r" +#\d+ [^\n]*libganesha_nfsd":
        "an owner's name is copied with the byte behind it",
    # Seen with ours alone: FSAL_CEPH was too slow to compare.  Ganesha alone
    # frees states.
    r"leak of [^\n]*\n[^\n]*calloc[^\n]*\n +#1 [^\n]*casync_fd_alloc_state":
        "a state that Ganesha had the plugin allocate is lost",
    "Possibly extra references": "a client's expiry goes round for ever",
}
# Reports go on, as far as they can: Ganesha's core is not instrumented, and
# what it copies past an end is told by the runtime's memcpy().
# ThreadSanitizer's look at the order of locks ends in a failed check of its
# own, and then no thread goes on; ci/sanitize.sh looks at that order.
GO_ON = {"address": "halt_on_error=0",
         "thread": "halt_on_error=0:detect_deadlocks=0"}
TRACE = re.compile(r"DEADLYSIGNAL|[Aa]ssert|Caught signal|Sanitizer")
# A frame's function, or where it is.
NAME = re.compile(r"#\d+ (?:0x[0-9a-f]+ in )?([A-Za-z_][\w:]*)")
PLACE = re.compile(r"([^ /()]+\+0x[0-9a-f]+)\)")
ASIDE = ("MemcmpInterceptorCommon", "memcmp")


def build(sanitizer):
    """The folder of a plugin with it."""
    folder = Path("/build") / sanitizer
    for words in (["cmake", "-S", TOP, "-B", folder, "-G", "Ninja",
                   f"-DCASYNC_SANITIZE={SANITIZERS[sanitizer]}"],
                  ["cmake", "--build", folder, "--target",
                   "fsalceph_async", "sanitize_preload"]):
        done = subprocess.run(words, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=BUILD_S,
                              check=False)
        assert done.returncode == 0, done.stdout[-4000:]
    return folder


def known(text):
    """What is known of it, or None."""
    for pattern, words in KNOWN.items():
        if re.search(pattern, text, re.S):
            return words
    return None


def headline(report):
    """A report in a line: its kind, and who called whom."""
    kind = re.search(r"(ERROR|WARNING): (\w+Sanitizer: [a-zA-Z -]+?) (on|\()|"
                     r"(runtime error: .*)", report)
    what = (kind[2] or kind[4]) if kind else "report"
    stacks = [part for part in report.split("\n\n") if "#0 " in part]
    frames = []
    for line in stacks[0].splitlines() if stacks else ():
        found = NAME.search(line) or PLACE.search(line)
        if found and found[1] not in ASIDE:
            frames.append(found[1])
    return f"{what} in {' < '.join(frames[:5])}"


class Target:
    def __init__(self, sanitizer, fsal):
        self.sanitizer, self.fsal = sanitizer, fsal
        self.daemon = Daemon(sanitizer, build(sanitizer), fsal,
                             GO_ON[sanitizer], SHORT_MEMORY) \
            if sanitizer else Lab()
        self.log = self.out = None
        self.told = set()

    def start(self):
        self.log = Log(LOGS / "ganesha-a.log")
        self.out = Log(LOGS / "ganesha-a.out")
        self.daemon.run("up", "--append", SMALL_CACHE, timeout=180)
        if self.sanitizer:
            self.daemon.start()
        else:
            self.daemon.run("up", "--fsal", self.fsal, "--export", "",
                            "--block", "", "--core", SHORT_MEMORY,
                            timeout=180)

    def start_again(self):
        self.log = Log(LOGS / "ganesha-a.log")
        self.out = Log(LOGS / "ganesha-a.out")
        self.daemon.run("ganesha", "start", timeout=180)
        if self.sanitizer:
            self.daemon.look_where_it_lies()

    def pid(self):
        return self.daemon.stat()["ganesha"]["a"]["pid"]

    def stacks(self):
        self.daemon.stacks()

    def why_it_ended(self):
        """A known fault's words, or the end of what it wrote."""
        text = self.log.text() + self.out.text()
        if self.sanitizer and not self.goes_round():
            found = self.daemon.reports().counting
            if found:
                return known(found[-1]) or headline(found[-1])
        lines = [line for line in text.splitlines() if TRACE.search(line)]
        return known(text) or " | ".join(lines[-12:])[-1500:] or \
            "it wrote nothing"

    def goes_round(self):
        """A thread of Ganesha does, and clients wait for it."""
        return self.log.matching("Possibly extra references")

    def kill(self):
        self.daemon.run("ganesha", "kill9")

    # --- what the sanitizer wrote

    def reports(self):
        """Of the plugin, of Ganesha's core alone, and not counting."""
        found = self.daemon.reports() if self.sanitizer else None
        if not found:
            return [], [], []
        ours = [one for one in found.counting if not known(one) and (
            PLUGIN in one or "runtime error" in one)]
        return ours, [one for one in found.counting if one not in ours], \
            found.others + found.ganeshas_leaks

    def look(self, say):
        """Says what is new."""
        ours, cores, _ = self.reports()
        for one in ours + cores:
            line = headline(one)
            if line not in self.told:
                self.told.add(line)
                say(f"report: {line}")

    def verdict(self, say, crashes):
        """What must not be; the daemon ends, so that leaks are looked for."""
        bad = [f"ganesha.nfsd ended: {why}" for why in crashes
               if why not in KNOWN.values()]
        if self.sanitizer:
            bad += self._end()
        ours, cores, others = self.reports()
        bad += [headline(one) for one in ours]
        for line, count in collections.Counter(
                map(headline, cores)).items():
            say(f"{count} reports of Ganesha's core: {line}")
        bad += [headline(one) for one in cores if not known(one)]
        if others:
            say(f"{len(others)} reports about code that is not instrumented, "
                f"kept in {self.daemon.prefix}.*")
        return sorted(set(bad))

    def _end(self):
        try:
            self.daemon.stop(END_S)
        except AssertionError as err:
            return [f"no orderly end: {str(err)[:500]}"]
        return []
