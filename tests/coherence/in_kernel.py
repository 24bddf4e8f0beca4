# SPDX-License-Identifier: LGPL-3.0-or-later
"""Inside the kernel client: reads and writes of CephFS for
access_paths.py.

    in_kernel.py PORT FOLDER

A line of JSON in ([operation, arguments…]), a line out ([error, result]).
"""
import base64
import json
import os
import socket
import sys


def find(folder, name):
    try:
        fd = os.open(f"{folder}/{name}", os.O_RDWR | os.O_SYNC)
    except FileNotFoundError:
        return None
    return fd, os.fstat(fd).st_ino


def read(_folder, fd, offset, length):
    return base64.b64encode(os.pread(fd, length, offset)).decode()


def write(_folder, fd, offset, text):
    data = base64.b64decode(text)
    if os.pwrite(fd, data, offset) != len(data):
        raise OSError("a short write")
    os.fsync(fd)


DO = {"find": find, "read": read, "write": write,
      "truncate": lambda _, fd, size: os.ftruncate(fd, size),
      "forget": lambda _, fd: os.close(fd)}


def main(port, folder):
    with socket.create_connection(("lab", port), timeout=30) as sock:
        sock.settimeout(None)
        with sock.makefile("rw", encoding="utf-8") as stream:
            for line in stream:
                operation, *args = json.loads(line)
                try:
                    answer = (None, DO[operation](folder, *args))
                except OSError as err:
                    answer = (str(err), None)
                stream.write(json.dumps(answer) + "\n")
                stream.flush()


main(int(sys.argv[1]), f"/mnt/ceph/{sys.argv[2]}")
