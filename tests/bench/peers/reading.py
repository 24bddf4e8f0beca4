# SPDX-License-Identifier: LGPL-3.0-or-later
"""Programs that read a whole tree, as a backup or a training job does."""
from __future__ import annotations

# Of each: shell in the tree.  What `tar` writes goes through a pipe, as it
# reads no file for /dev/null.  `rsync` and `sorted` go by name, not in the
# order of READDIR.
PROGRAMS = {
    "find": "find . -ls >/dev/null",
    "du": "du -s . >/dev/null",
    "tar": "tar -cf - . | cat >/dev/null",
    "tar-8": "ls -U | xargs -P 8 -I {} sh -c 'tar -cf - {} | cat >/dev/null'",
    "grep": "grep -r no-such-word . || [ $? = 1 ]",
    "rsync": "rsync -a . /tmp/copy; rm -rf /tmp/copy",
    "sorted": "find . -type f | sort | xargs cat >/dev/null",
    "shuffled": "find . -type f | shuf --random-source=/etc/services | "
                "xargs cat >/dev/null",
}


def script(where: str, program: str) -> str:
    """Shell that tells how long the program takes, twice; before the second
    time the client forgets what it has, and the server does not."""
    once = f"""
begun=$(date +%s.%N)
{PROGRAMS[program]}
echo "took $begun $(date +%s.%N)"
"""
    return f"""
set -e
cd {where}
{once}
cd /
echo 3 > /proc/sys/vm/drop_caches
cd {where}
{once}
"""


def rates(out: str, count: int) -> dict[str, float]:
    """Files a second, with a cold server and with a warm one."""
    took = [float(ended) - float(begun) for _, begun, ended in
            (line.split() for line in out.splitlines()
             if line.startswith("took "))]
    return {"cold_per_s": count / took[0], "warm_per_s": count / took[1]}
