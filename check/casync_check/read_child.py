# SPDX-License-Identifier: LGPL-3.0-or-later
"""A process of its own: reads a ganesha.conf by Ganesha's parser.

    read_child.py GANESHA_LIBRARY OUR_LIBRARY FUNCTION CONFIGURATION

JSON goes to stdout.  Ganesha may end the process, or wait for RADOS (%url):
reader.py starts it with a limit of time.
"""
import ctypes
import os
import signal
import sys


def main():
    ganesha, ours, function, path = sys.argv[1:]
    # Ganesha's watch of a URL sends one; ganesha.nfsd would read again.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # What libraries print must not come between.
    out = os.dup(1)
    os.dup2(2, 1)
    ctypes.CDLL(ganesha, ctypes.RTLD_GLOBAL)
    status = getattr(ctypes.CDLL(ours), function)(os.fsencode(path), out)
    # Without destructors: Ganesha's threads and ours are not to be ended.
    os._exit(status)


main()
