# SPDX-License-Identifier: LGPL-3.0-or-later
"""Ceph's admin sockets, spoken to directly: a `ceph` process costs 0.4 s."""
from __future__ import annotations

import json
import socket
import struct
from pathlib import Path
from typing import Any

from .util import LabError


def ask(path: Path, prefix: str, timeout: float = 10, **args: Any) -> Any:
    """One command to one daemon, its JSON answer decoded."""
    if args:
        _known(path, prefix, args)
    request = json.dumps({"prefix": prefix, "format": "json", **args})
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(timeout)
        try:
            sock.connect(str(path))
            sock.sendall(request.encode() + b"\0")
            size = struct.unpack(">I", _exactly(sock, 4))[0]
            answer = _exactly(sock, size).decode("utf-8", "replace")
        except OSError as err:
            raise LabError(f"admin socket {path}: {prefix}: {err}") from None
    try:
        return json.loads(answer) if answer.strip() else None
    except ValueError:
        raise LabError(f"admin socket {path}: {prefix}: "
                       f"{answer.strip()}") from None


def _known(path: Path, prefix: str, args: dict[str, Any]) -> None:
    """A daemon ignores an argument that it does not know, and does what the
    command says without it: to everybody.  The `ceph` tool refuses one."""
    names = {part["name"] for one in
             ask(path, "get_command_descriptions").values()
             if " ".join(word for word in one["sig"]
                         if isinstance(word, str)) == prefix
             for part in one["sig"] if isinstance(part, dict)}
    if unknown := sorted(set(args) - names):
        raise LabError(f"admin socket {path}: {prefix} takes "
                       f"{', '.join(sorted(names)) or 'no argument'}, not "
                       f"{', '.join(unknown)}")


def _exactly(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = sock.recv(count - len(data))
        if not more:
            raise ConnectionError("closed in the middle of an answer")
        data += more
    return data
