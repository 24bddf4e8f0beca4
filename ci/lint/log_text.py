#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""No client writes into Ganesha's log, and none fills it.

    ci/lint/log_text.py

Looks at the log calls of the files that serve requests: object/, io/ and the
plugin's top folder.  Each text of a line (%s) is one that TEXTS names: names,
paths, links, owners and extended attributes come from clients, and may have
line ends in them.  A line at EVENT or above passes
casync_clock_once_a_minute() in its function, or BOUNDED says what else limits
it.
"""

import re
import sys
from pathlib import Path

PLUGIN = Path(__file__).resolve().parents[2] / "FSAL_CEPH_ASYNC"

# An argument of %s, and where its text comes from.
TEXTS = {
    r"strerror\(.*\)|dlerror\(\)": "the C library",
    r"fsal_err_txt\(.*\)|layout_reason\(rc\)|module_known\(.*\)"
    r"|casync_name|CASYNC_VERSION|why|what|of|running\.\w+|built->\w+"
    r"|casync_versions_built\.ganesha": "texts of ours and of Ganesha",
    r"casync_op_dump_format\(.*\)": "numbers and a state",
    r"handle_ops_client\(\)": "an address",
    r"session->client": "the session's name: numbers and the export's id",
    r"path|exp->mount->identity\.path|keys->handle_keys|wanted|value"
    r"|value != NULL \? value : \"\(preset\)\"|list|text":
        "the configuration",
    r"state->state_type == STATE_TYPE_LOCK \? \"[^\"]*\" : \"[^\"]*\""
    r"|rc == -ENOENT \? \"[^\"]*\" : strerror\(-rc\)"
    r"|casync_session_comes_back\(exp->mount\) \? \"[^\"]*\" : \"[^\"]*\""
    r"|holder|but": "texts of ours",
}
# Of these files alone: elsewhere a client may have chosen it.
ONLY_IN = {
    "path": ("export.c", "export_ops.c"),
    "value": ("module.c", "object/layout.c"),
    "wanted": ("object/layout.c",),
    "what": ("object/layout.c",),
    "why": ("handle_ops.c", "io/watchdog.c", "module.c"),
    "holder": ("object/lock_records.c",),
    "of": ("reload.c",), "but": ("reload.c",), "text": ("reload.c",),
    "list": ("reload.c",),
}
# A line that is not one a minute: file and function, and what limits it.
BOUNDED = {
    "handle_ops.c: casync_handle_ops_load": "once for a configuration",
    "handle_ops.c: casync_handle_ops_can_sign": "once for a configuration",
    "io/op.c: casync_op_log_ended": "those that the watchdog has listed",
    "io/watchdog.c: watchdog_log_slow_ops": "a list's length in each tick",
    "io/watchdog.c: watchdog_log_duplicates": "one in each tick",
    "io/watchdog.c: casync_watchdog_list": "a list's length at a drain",
    "io/watchdog.c: watchdog_check_the_end": "the process ends",
    "object/layout.c: layout_failed": "once for a configuration",
    "object/lock_records.c: lock_records_say_lost":
        "a lock at a lost session; the locks of clients have Ganesha's bound",
}
# No request comes here.
NOT_FOR_REQUESTS = ("export.c", "export_ops.c", "module.c", "reload.c",
                    "restore.c")

CALL = re.compile(r"\bLog(Fatal|Major|Crit|Warn|Event|Info|Debug|MidDebug"
                  r"|FullDebug)\(")
LOUD = {"Fatal", "Major", "Crit", "Warn", "Event"}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
FUNCTION = re.compile(r"^[A-Za-z_][^;{}]*?\b(\w+)\([^;{}]*\)\s*\n\{.*?^\}",
                      re.M | re.S)
LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"|PRI\w+')
CONVERSION = re.compile(r"%%|%[-+ #0]*(\*|\d+)?(?:\.(\*|\d+))?"
                        r"(?:hh?|ll?|z|j|t)?(\0|[a-zA-Z])")


def arguments(text):
    """The arguments of a call; TEXT begins behind its parenthesis."""
    found, start, depth, at = [], 0, 0, 0
    while depth >= 0:
        quoted = re.compile(r'"(?:[^"\\]|\\.)*"').match(text, at)
        if quoted:
            at = quoted.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth < 0 or (depth == 0 and text[at] == ","):
            found.append(" ".join(text[start:at].split()))
            start = at + 1
        at += 1
    return found


def shown(parts):
    """The arguments that a line shows as %s."""
    form = "".join("\0" if word.startswith("PRI") else word[1:-1]
                   for word in LITERAL.findall(parts[1]))
    at = 2
    for match in CONVERSION.finditer(form):
        if match[0] == "%%":
            continue
        at += (match[1] == "*") + (match[2] == "*")
        if match[3] == "s":
            yield parts[at]
        at += 1


def is_known(file, argument):
    """Whether the text of an argument is of no client."""
    return any(re.fullmatch(pattern, argument) for pattern in TEXTS) and \
        file in ONLY_IN.get(argument, (file,))


def findings(file, text):
    """(place, what is wrong) of each log call in a file."""
    text = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    for function in FUNCTION.finditer(text):
        for call in CALL.finditer(function[0]):
            place = function.start() + call.start()
            for argument in shown(arguments(function[0][call.end():])):
                if not is_known(file, argument):
                    yield place, f"may show a client's text: {argument}"
            if call[1] in LOUD and file not in NOT_FOR_REQUESTS and \
                    f"{file}: {function[1]}" not in BOUNDED and \
                    "casync_clock_once_a_minute(" not in function[0]:
                yield place, "a client can fill the log with it"


def main():
    """Print the log calls that a client could abuse."""
    paths = [*PLUGIN.glob("*.c"), *PLUGIN.glob("object/*.c"),
             *PLUGIN.glob("io/*.c")]
    wrong = 0
    for path in sorted(paths):
        text = path.read_text(encoding="utf-8")
        file = str(path.relative_to(PLUGIN))
        for place, what in findings(file, text):
            line = text.count("\n", 0, place) + 1
            print(f"FSAL_CEPH_ASYNC/{file}:{line}: {what}")
            wrong += 1
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
