# SPDX-License-Identifier: LGPL-3.0-or-later
"""The symptoms of docs/runbook.md: each command succeeds in the lab and prints
something.

A block that begins with ```sh gateway or ```sh client has a command in each
line, and a row of a table that begins with gateway, client or both has one.
The blocks set-gateway and set-client come before each of them.
"""
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from lab import LOGS

TEXT = (Path(__file__).parents[2] / "docs/runbook.md").read_text(
    encoding="utf-8").partition("\n## Symptoms\n")[2].partition("\n## ")[0]
SYMPTOMS = ["Slow", "Hangs", "EIO", "ESTALE", "Permission denied",
            "Locks lost", "Cannot mount", "Memory grows",
            "Client sees old data"]
RUN = Path("/var/lib/casync-lab")
# Its status 1 are warnings: the lab's export is client.admin's.
CHECK = "ganesha-ceph-async-check "


def blocks(mark, text=TEXT):
    return re.findall(rf"^```sh {mark}\n(.*?)^```$", text, re.M | re.S)


def rows(mark, text=TEXT):
    """The command of each row; what is pasted from it has no \\|."""
    return re.findall(rf"^\| (?:{mark}|both) \| `([^`|]+)` \|", text, re.M)


def commands(mark):
    return [line for block in blocks(mark) for line in block.splitlines()] + \
        rows(mark)


def test_no_row_is_left_out():
    """Each has a command, or goes on with that of the row before."""
    first = re.findall(r"^\|([^|]*)\|", TEXT, re.M)
    marks = {" gateway ", " client ", " both "}
    assert set(first) == marks | {" on ", "---", " "}
    assert sum(mark in marks for mark in first) == \
        len(rows("gateway|client"))


def wrong(command, status, printed):
    """What is to be said against it; "" if it went well."""
    allowed = (0, 1) if command.startswith(CHECK) else (0,)
    if status not in allowed:
        return f"{command}: status {status}: {printed}"
    return "" if printed.strip() else f"{command}: it printed nothing"


@pytest.mark.parametrize("symptom", SYMPTOMS)
def test_a_symptom_has_its_commands(symptom):
    section = re.search(rf"^### {symptom}\n(.*?)^### ", TEXT, re.M | re.S)
    assert section, f"no section {symptom}"
    assert rows("gateway|client", section[1])
    assert "| what it says | what to do |" in section[1]


def test_on_the_gateway(lab, tmp_path):
    lab.ganesha("restart", "--core", "Enable_Metrics = true;")
    pid = lab.stat()["ganesha"]["a"]["pid"]
    sockets = list((RUN / "ceph/run").glob(f"client.*.{pid}.*.asok"))
    assert len(sockets) == 1, sockets
    report = tmp_path / "report.tar.gz"
    head = (f"CONF={RUN}/ganesha/a/ganesha.conf\n"
            f"LOG={LOGS}/ganesha-a.log\nSOCKETS={sockets[0].parent}\n"
            f"REPORT={report}\n{blocks('set-gateway')[0]}")
    found = []
    for command in commands("gateway"):
        done = subprocess.run(
            ["bash", "-c", head + command], text=True, timeout=60,
            cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True,
            check=False)
        said = wrong(command, done.returncode, done.stdout)
        found.append(said and f"{said}\n{done.stderr}")
    assert len(found) > 30
    assert not any(found), "\n".join(filter(None, found))
    assert report.stat().st_size > 0


def test_on_a_client(lab, tmp_path):
    """All in one client; each command ends with a line of ours."""
    head = f"MNT=/mnt/nfs\nFILE=/mnt/nfs/troubled\n{blocks('set-client')[0]}"
    lines = ["set -e", "date > /mnt/nfs/troubled",
             r"gateway=$(sed -n 's,^\([0-9.]*\):.* /mnt/nfs nfs.*,\1,p'"
             " /proc/mounts)", "set +e"]
    tried = commands("client")
    for number, command in enumerate(tried):
        lines += [f"out=$(GATEWAY=$gateway timeout 20 bash -c "
                  f"{shlex.quote(head + command)} < /dev/null)",
                  "status=$?",
                  f"printf '%s\\nran {number} %s %s\\n' "
                  '"$out" "$status" "${#out}"']
    script = tmp_path / "commands.sh"
    script.write_text("\n".join([*lines, "rm /mnt/nfs/troubled", ""]),
                      encoding="utf-8")
    out = lab.client("bash", script, seconds=60)
    ran = re.findall(r"^ran (\d+) (\d+) (\d+)$", out, re.M)
    assert [int(number) for number, _, _ in ran] == list(range(len(tried)))
    found = [wrong(command, int(status), "x" * int(length))
             for command, (_, status, length) in zip(tried, ran)]
    assert not any(found), "\n".join(filter(None, found)) + "\n" + out
