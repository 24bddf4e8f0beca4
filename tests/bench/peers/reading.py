# SPDX-License-Identifier: LGPL-3.0-or-later
"""Programs that read a whole tree, as a backup or a training job does."""
from __future__ import annotations

from peers import tree

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
    """Shell that tells as tree.script() does, of the program and of the same
    once more; meanwhile the client forgets what it has, the server does not."""
    return f"""
set -e
{tree.TELL}
cd {where}
tell cold
{PROGRAMS[program]}
tell end
cd /
echo 3 > /proc/sys/vm/drop_caches
cd {where}
tell warm
{PROGRAMS[program]}
tell end
"""
