# SPDX-License-Identifier: LGPL-3.0-or-later
"""ganesha-ceph-async-config handle-keys: the object that Handle_Keys names.

The object has one or two lines, a key each.  The first one signs.  Each step
is one atomic write that is refused if the object has changed meanwhile.
"""
import re
import secrets
import sys

SCHEME = "rados://"
KEY = re.compile(r"[0-9A-Fa-f]{64}")
MOST_BYTES = 4095       # what the plugin reads
TIMEOUT_S = "10"
RELOAD = ("Now reload each gateway: kill -HUP, or --notify with the "
          "watch_url of RADOS_URLS { }.")
NEXT = {
    "create": "The key is made. " + RELOAD,
    "add": "All gateways that read it accept the new key from now on. " +
           RELOAD + " Next: --use.",
    "use": "The new key signs, the old one is accepted. " + RELOAD +
           " Next, when all clients have mounted again: --drop.",
    "drop": "The old key is gone. " + RELOAD,
}


class Refused(Exception):
    """What is wrong, and the way out."""


def place(url):
    """Pool, namespace and object of a URL."""
    parts = url.removeprefix(SCHEME).split("/")
    if not url.startswith(SCHEME) or len(parts) != 3 or not parts[0] or \
            not parts[2]:
        raise Refused(f"{url}: it must be {SCHEME}POOL/NAMESPACE/OBJECT")
    return parts


def keys_of(text):
    """The lines with keys."""
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    keys = [line for line in lines if line]
    if not 1 <= len(keys) <= 2 or not all(map(KEY.fullmatch, keys)):
        raise Refused("the object is not one or two lines of 64 hexadecimal "
                      "digits; remove it, and --create it again")
    return keys


def after(step, keys):
    """The keys when the step is done."""
    new = secrets.token_hex(32)
    if step == "create":
        return [new]
    if step == "add":
        if len(keys) == 2:
            raise Refused("there are two keys already: --use or --drop first")
        return [*keys, new]
    if len(keys) == 1:
        raise Refused("there is one key only: --add one first")
    return keys[::-1] if step == "use" else keys[:1]


class Cluster:
    """A connection of one user."""

    def __init__(self, user, conf):
        import rados  # noqa: PLC0415: only this command needs it
        self.rados = rados
        self.connection = rados.Rados(
            rados_id=user, conffile=conf, conf=dict.fromkeys(
                ("client_mount_timeout", "rados_mon_op_timeout",
                 "rados_osd_op_timeout"), TIMEOUT_S))

    def __enter__(self):
        self.connection.connect()
        return self

    def __exit__(self, *_):
        self.connection.shutdown()

    def pool(self, url):
        pool, space, name = place(url)
        ioctx = self.connection.open_ioctx(pool)
        ioctx.set_namespace(space)
        return ioctx, name

    def write(self, url, step):
        """Do one step."""
        ioctx, name = self.pool(url)
        with ioctx, self.rados.WriteOpCtx() as change:
            if step == "create":
                change.new(self.rados.LIBRADOS_CREATE_EXCLUSIVE)
                keys = []
            else:
                keys = keys_of(
                    ioctx.read(name, MOST_BYTES).decode("ascii", "replace"))
                change.assert_version(ioctx.get_last_version())
            text = "".join(f"{key}\n" for key in after(step, keys))
            change.write_full(text.encode())
            ioctx.operate_write_op(change, name)

    def notify(self, url):
        """Gateways that watch the object read their configuration again."""
        ioctx, name = self.pool(url)
        with ioctx:
            ioctx.notify(name, timeout_ms=int(TIMEOUT_S) * 1000)


def run(arguments):
    """The exit status."""
    written = False
    try:
        place(arguments.notify or arguments.url)
        with Cluster(arguments.user, arguments.conf) as cluster:
            cluster.write(arguments.url, arguments.step)
            written = True
            print(f"{arguments.url}: {NEXT[arguments.step]}")
            if arguments.notify:
                cluster.notify(arguments.notify)
                print(f"{arguments.notify}: its gateways are told to reload.")
    except ImportError:
        return complain("Python has no module rados: install python3-rados")
    except Refused as refused:
        return complain(str(refused))
    except Exception as err:  # noqa: BLE001: rados.Error, and what it raises
        if type(err).__module__ != "rados":
            raise
        done = "the keys are written, but no gateway was told" if written \
            else "nothing is changed"
        return complain(f"{arguments.notify if written else arguments.url}: "
                        f"user '{arguments.user}': {err}; {done}")
    return 0


def complain(text):
    print(f"ganesha-ceph-async-config: {text}", file=sys.stderr)
    return 1
