# SPDX-License-Identifier: LGPL-3.0-or-later
"""Inside the kernel client: runs what the benchmark sends, one at a time.

    agent.py PORT

A line of JSON in ({"script", "timeout"}), a line out ({"status", "out",
"err"}).  So one boot serves many measurements, and none contains a boot.
"""
import json
import socket
import subprocess
import sys


def answer(order):
    try:
        done = subprocess.run(
            ["bash", "-c", order["script"]], stdin=subprocess.DEVNULL,
            capture_output=True, text=True,
            errors="replace", timeout=order["timeout"], check=False)
    except subprocess.TimeoutExpired:
        return {"status": 124, "out": "", "err": "timed out"}
    return {"status": done.returncode, "out": done.stdout,
            "err": done.stderr}


def main(port):
    with socket.create_connection(("lab", port), timeout=30) as sock:
        sock.settimeout(None)
        with sock.makefile("rw", encoding="utf-8") as stream:
            for line in stream:
                stream.write(json.dumps(answer(json.loads(line))) + "\n")
                stream.flush()


main(int(sys.argv[1]))
