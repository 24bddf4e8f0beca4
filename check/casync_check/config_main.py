# SPDX-License-Identifier: LGPL-3.0-or-later
"""Command line of ganesha-ceph-async-config."""
import argparse

from . import end_session, handle_keys


def _arguments(words):
    parser = argparse.ArgumentParser(
        prog="ganesha-ceph-async-config",
        description="Changes what FSAL CEPH_ASYNC keeps in Ceph.")
    commands = parser.add_subparsers(required=True)
    keys = commands.add_parser(
        "handle-keys", help="the keys of Handle_Keys = \"rados://...\"",
        description="Makes the object that Handle_Keys names, or changes its "
                    "keys in three steps, while clients go on.")
    step = keys.add_mutually_exclusive_group(required=True)
    for name, text in (("create", "make the object, with one key"),
                       ("add", "a new key, which is accepted"),
                       ("use", "the new key signs"),
                       ("drop", "remove the old key")):
        step.add_argument(f"--{name}", dest="step", action="store_const",
                          const=name, help=text)
    keys.add_argument("url", metavar="rados://POOL/NAMESPACE/OBJECT")
    keys.add_argument("--notify", metavar="URL",
                      help="the watch_url of RADOS_URLS { }: gateways that "
                           "watch it reload")
    keys.set_defaults(run=handle_keys.run)
    ends = commands.add_parser(
        "end-session", help="what a gateway that is gone has left",
        description="Has the MDS end CephFS sessions of a gateway that was "
                    "stopped for good.  Its last lines in Ganesha's log name "
                    "them.")
    ends.add_argument("names", nargs="+", metavar="NAME",
                      help="of a session: ganesha-...")
    ends.set_defaults(run=end_session.run)
    for command in (keys, ends):
        command.add_argument("--user", default="admin", metavar="ID",
                             help="of Ceph, without \"client.\" (admin)")
        command.add_argument("--conf", default="/etc/ceph/ceph.conf",
                             metavar="FILE", help="Ceph's configuration "
                             "(/etc/ceph/ceph.conf)")
    return parser.parse_args(words)


def main(words=None):
    """The exit status."""
    arguments = _arguments(words)
    return arguments.run(arguments)
