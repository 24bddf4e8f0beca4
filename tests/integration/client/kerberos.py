# SPDX-License-Identifier: LGPL-3.0-or-later
"""In a kernel client: users with tickets, and without, on one export.

kerberos.py FLAVOUR PORT PSEUDO KEYTAB PASSWORD STEPS...; prints what each
step saw as JSON.
"""
import hashlib
import json
import os
import pwd
import re
import subprocess
import sys
import time

FLAVOUR, PORT, PSEUDO, KEYTAB, PASSWORD = sys.argv[1:6]
MOUNT = "/mnt/krb"
TICKETS = "/run/tickets"
# Odd on purpose: no multiple of a block, a page or a cipher's block.
SIZE = 3 * (1 << 20) + 4097
PATIENCE_S = 60


def run(*command, user=None, text=None):
    """Status and output; 124 is a hang."""
    words = list(command)
    if user:
        words = ["setpriv", f"--reuid={user}", f"--regid={user}",
                 "--clear-groups", *words]
    done = subprocess.run(["timeout", "-s", "KILL", str(PATIENCE_S), *words],
                          input=text, capture_output=True, text=True,
                          errors="replace", check=False)
    return done.returncode, (done.stdout + done.stderr).strip()


def must(*command, **options):
    status, said = run(*command, **options)
    assert status == 0, (command, status, said)
    return said


def cache_of(user):
    """Where gssd looks.  The root file system of this kernel gives all files
    to root; /run is its own."""
    return f"FILE:{TICKETS}/krb5cc_{pwd.getpwnam(user).pw_uid}"


def kinit(user, *options):
    must("kinit", "-c", cache_of(user), *options, user, user=user,
         text=PASSWORD + "\n")


def set_up():
    must("modprobe", "rpcsec_gss_krb5")
    os.makedirs("/run/rpc_pipefs", exist_ok=True)
    must("mount", "-t", "rpc_pipefs", "rpc_pipefs", "/run/rpc_pipefs")
    os.makedirs(TICKETS, exist_ok=True)
    os.chmod(TICKETS, 0o1777)
    must("rpc.gssd", "-k", KEYTAB, "-p", "/run/rpc_pipefs", "-d", TICKETS)


def mount(flavour=FLAVOUR):
    os.makedirs(MOUNT, exist_ok=True)
    return run("mount", "-t", "nfs4", "-o",
               f"vers=4.2,proto=tcp,port={PORT},sec={flavour}",
               f"lab:{PSEUDO}", MOUNT)


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("3\n")


def digest_as(user, path):
    status, said = run("sha256sum", path, user=user)
    return said.split()[0] if status == 0 else said


# --- steps: each gives something for the test to look at

def by_sys():
    """The flavour that a mount by sys got: Linux asks the server (SECINFO) at
    the border of an export.  None: it was refused."""
    if mount("sys")[0] != 0:
        return None
    with open("/proc/mounts", encoding="ascii") as mounts:
        options, = (words[3] for words in map(str.split, mounts)
                    if words[1] == MOUNT)
    must("umount", MOUNT)
    return re.search("sec=([^,]+)", options)[1]


def data():
    """Alice writes; read back from the server, and from its cache."""
    kinit("alice")
    content = os.urandom(SIZE)
    wanted = hashlib.sha256(content).hexdigest()
    with open("/run/content", "wb") as file:
        file.write(content)
    os.chmod("/run/content", 0o644)
    path = f"{MOUNT}/of-alice"
    must("cp", "/run/content", path, user="alice")
    must("chmod", "600", path, user="alice")
    seen = []
    for _ in range(3):
        drop_caches()
        seen.append(digest_as("alice", path) == wanted)
    status, said = run("dd", f"if={path}", "of=/dev/null", "bs=997",
                       "iflag=direct", user="alice")
    about = os.stat(path)
    return {"same": seen, "odd": [status, said.splitlines()[-1]],
            "owner": [about.st_uid, about.st_gid], "size": about.st_size}


def strangers():
    """Bob with a ticket of his own, then nobody's."""
    path = f"{MOUNT}/of-alice"
    without = run("stat", path, user="bob")
    kinit("bob")
    must("touch", f"{MOUNT}/of-bob", user="bob")
    return {"without a ticket": without,
            "bob": run("cat", path, user="bob"),
            "his": os.stat(f"{MOUNT}/of-bob").st_uid}


def squashed():
    """Whose files are they that alice and root make?"""
    kinit("alice")
    seen = {}
    for user in ("alice", None):
        path = f"{MOUNT}/squashed-{user}"
        must("touch", path, user=user)
        seen[user or "root"] = os.stat(path).st_uid
    return seen


def root():
    """Root has no ticket: the machine's credential is used."""
    path = f"{MOUNT}/of-root-{FLAVOUR}"
    return {"touch": run("touch", path),
            "uid": os.stat(path).st_uid if os.path.exists(path) else None,
            "read": run("cat", f"{MOUNT}/of-alice")[0]}


def expired():
    """A ticket ends while a file is open; a new one goes on with it."""
    must("kdestroy", "-c", cache_of("alice"), user="alice")
    kinit("alice", "-l", "12s")
    path = f"{MOUNT}/expires"
    script = (
        "import os, sys, time\n"
        "fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_TRUNC)\n"
        "def go(n):\n"
        "    try:\n"
        "        os.pwrite(fd, b'%08d' % n, 8 * n)\n"
        "        os.fsync(fd)\n"
        "        return 0\n"
        "    except OSError as err:\n"
        "        return err.errno\n"
        "for line in sys.stdin:\n"
        "    begun = time.monotonic()\n"
        "    print(go(int(line)), round(time.monotonic() - begun, 1),\n"
        "          flush=True)\n")
    with subprocess.Popen(
            ["setpriv", "--reuid=alice", "--regid=alice", "--clear-groups",
             "python3", "-c", script, path], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True) as worker:

        def ask(number):
            print(number, file=worker.stdin, flush=True)
            error, seconds = worker.stdout.readline().split()
            return [int(error), float(seconds)]
        first = ask(0)
        time.sleep(15)
        ended = ask(1)
        kinit("alice")
        time.sleep(1)
        again = []
        for _ in range(30):
            again.append(ask(1))
            if again[-1][0] == 0:
                break
            time.sleep(1)
        worker.stdin.close()
    drop_caches()
    return {"first": first, "ended": ended, "again": again,
            "content": run("cat", path, user="alice")[1]}


def main():
    set_up()
    seen = {}
    steps = sys.argv[6:]
    if "by_sys" in steps:
        seen["by_sys"] = by_sys()
        steps.remove("by_sys")
    status, said = mount()
    assert status == 0, said
    for step in steps:
        seen[step] = globals()[step]()
    must("umount", MOUNT)
    print(json.dumps(seen))


main()
