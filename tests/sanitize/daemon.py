# SPDX-License-Identifier: LGPL-3.0-or-later
"""A ganesha.nfsd with the plugin built by gcc's sanitizers in it."""
import contextlib
import re
import subprocess
import time
from pathlib import Path

import dbus

from lab import LOGS, Lab, Log
from reports import Reports, with_lines

LIBRARY = {"address": "libasan.so", "thread": "libtsan.so"}
# The runtime wants to be the first library, but preload.c has to come before
# it.  Ganesha frees what it has before it exits: leaks can be looked for.
OPTIONS = {
    "address": {"ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=1:"
                                "detect_stack_use_after_return=1:{log}",
                "UBSAN_OPTIONS": "print_stacktrace=1:{log}"},
    "thread": {"TSAN_OPTIONS": "second_deadlock_stack=1:history_size=4:"
                               "exitcode=0:{log}"},
}
EXPORT_ID = 1
LOAD_ENDS_S = 100


def _runtime(library):
    done = subprocess.run(["gcc", f"-print-file-name={library}"], text=True,
                          stdout=subprocess.PIPE, check=True, timeout=60)
    return Path(done.stdout.strip()).resolve()


class Daemon(Lab):
    """MORE are options of the runtime, CORE more keys of NFS_CORE_PARAM.
    Another FSAL is not instrumented, but what the runtime itself looks at is
    told."""

    def __init__(self, sanitizer, build, fsal="CEPH_ASYNC", more="", core=""):
        super().__init__()
        self.sanitizer, self.fsal, self.more = sanitizer, fsal, more
        self.core = core
        self.build = Path(build)
        self.plugin = self.build / "FSAL_CEPH_ASYNC/libfsalceph_async.so"
        self.runtime = _runtime(LIBRARY[sanitizer])
        self.prefix = LOGS / f"sanitizer-{sanitizer}"
        self.load_ends = LOGS / "load-ends"
        self.base = 0
        self.log = None
        self.seen = set()

    def _wrapper(self, more):
        # The last one: ASan looks for its __cxa_throw at the start, and only
        # later does a Ganesha that has no C++ load libcephfs.
        env = [f"LD_PRELOAD={self.build / 'tests/sanitize'}/"
               f"sanitize_preload.so:{self.runtime}:{_runtime('libstdc++.so')}"]
        log = ":".join(filter(None, [f"log_path={self.prefix}", self.more,
                                     more]))
        env += [f"{name}={value.format(log=log)}"
                for name, value in OPTIONS[self.sanitizer].items()]
        return " ".join(["env", *env])

    def start(self, more=""):
        """With the plugin from the build tree, MORE options of the runtime,
        and what it says from now on."""
        self.log = Log(LOGS / "ganesha-a.log")
        self.whole_logs = [self.log]
        self.seen = set(LOGS.glob(f"{self.prefix.name}.*"))
        ours = self.fsal == "CEPH_ASYNC"
        self.run("up", "--fsal", self.fsal, "--export", "", "--block", "",
                 "--wrapper", self._wrapper(more), "--core",
                 (f"Plugins_Dir = {self.plugin.parent};" if ours else "") +
                 self.core,
                 timeout=180)
        self.started = True
        self.look_where_it_lies()

    def look_where_it_lies(self):
        """The plugin, in a daemon that was just started."""
        if self.fsal == "CEPH_ASYNC":
            self.base = self._mapped(self.plugin)
        assert self._mapped(self.runtime)

    def restore(self):
        """Whoever uses the lab next has the installed plugin."""
        self.run("ganesha", "stop", "--timeout", "60", check=False)
        self.run("ganesha", "start", "--wrapper", "", "--core", "",
                 timeout=180)

    def _mapped(self, path):
        """Where PATH lies in the daemon: it is what was meant to be."""
        maps = Path(f"/proc/{self._pid('a')}/maps").read_text()
        found = re.search(rf"^([0-9a-f]+)-.* {re.escape(str(path))}$", maps,
                          re.M)
        assert found, f"{path} is not in ganesha.nfsd:\n{maps}"
        return int(found[1], 16)

    def pid(self):
        return self._pid("a")

    def stop(self, seconds):
        """SIGTERM; an end by exit(), for leaks are looked for there."""
        self.run("ganesha", "stop", "--timeout", seconds,
                 timeout=seconds + 180)
        assert self.log.matching("NFS EXIT: regular exit"), self.tails()
        if self.fsal == "CEPH_ASYNC":
            assert self.log.matching("FSAL CEPH_ASYNC unloaded"), self.tails()

    def reports(self):
        text = "".join(path.read_text(errors="replace") for path in
                       sorted(set(LOGS.glob(f"{self.prefix.name}.*")) -
                              self.seen))
        return Reports(with_lines(text, self.plugin, self.base))

    # --- its exports

    def _exports(self):
        name = "org.ganesha.nfsd"
        return dbus.Interface(
            dbus.SystemBus().get_object(name, "/org/ganesha/nfsd/ExportMgr",
                                        introspect=False),
            f"{name}.exportmgr")

    def unexport(self, seconds):
        """By DBus, as an administrator would."""
        self._exports().RemoveExport(dbus.UInt16(EXPORT_ID), timeout=seconds,
                                     signature="q")

    def export_again(self, seconds):
        conf = "/var/lib/casync-lab/ganesha/a/ganesha.conf"
        self._exports().AddExport(conf, f"EXPORT(Export_Id={EXPORT_ID})",
                                  timeout=seconds, signature="ss")

    # --- load

    def start_load(self, *versions):
        """The soak's load over each version; it goes on until it fails, or
        until end_load()."""
        load = Path(__file__).parents[1] / "soak/load.sh"
        self.load_ends.unlink(missing_ok=True)
        return [self.start_client("bash", load, 300, self.load_ends,
                                  vers=version, seconds=320)
                for version in versions]

    def end_load(self, clients):
        """They unmount while the daemon serves: a client that is killed leaves
        its open files, which Ganesha may not free at its end."""
        self.load_ends.touch()
        seconds = LOAD_ENDS_S if self.stat()["ganesha"]["a"]["pid"] else 0
        for client in clients:
            with contextlib.suppress(subprocess.TimeoutExpired):
                client.wait(seconds)
        for client in clients:
            client.terminate()
        for client in clients:
            client.wait(60)

    def wait_for_io(self, megabytes, seconds=60):
        """Until so much has been written, and some is in flight."""
        before = self._written()
        end = time.monotonic() + seconds
        while self._written() - before < megabytes << 20 or \
                not self.stat()["ganesha"]["a"]["in_flight"]["osd"]:
            assert time.monotonic() < end, \
                f"not {megabytes} MB in {seconds} s"
            time.sleep(0.1)

    def _written(self):
        return self.stat()["osd"]["total"]["op_in_bytes"]
