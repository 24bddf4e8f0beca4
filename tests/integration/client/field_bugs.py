# SPDX-License-Identifier: LGPL-3.0-or-later
"""What reporters of field bugs did, in the kernel client:
field_bugs.py DIRECTORY NAME...

Each NAME is a function here and a row of docs/comparison.md.  Prints a line of
JSON: by name, how it went ("passes" or what was wrong) and a note.
"""
import json
import random
import subprocess
import sys
import time
from pathlib import Path

LIMIT_S = 40            # of one step; a hang is then a failure of it
TAC_MIB = 8
LINE = 64


def shell(script, directory, limit_s=LIMIT_S):
    """The script's output; it must end in time, with status 0."""
    done = subprocess.run(
        ["timeout", "-s", "KILL", str(limit_s), "bash", "-ec", script],
        cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    said = " ".join(done.stdout.split())[-160:]
    if done.returncode in (137, -9):
        raise AssertionError(f"no end within {limit_s} s: {said}")
    if done.returncode != 0:
        raise AssertionError(f"status {done.returncode}: {said}")
    return done.stdout


def equal(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what}: {found!r} instead of {wanted!r}")


def forget_pages():
    subprocess.run(["sync"], check=True)
    Path("/proc/sys/vm/drop_caches").write_text("3\n", encoding="ascii")


def returned():
    """The delegations that this client has returned."""
    for line in Path("/proc/self/mountstats").read_text(
            encoding="ascii").splitlines():
        words = line.split()
        if words and words[0] == "DELEGRETURN:":
            return int(words[1])
    raise AssertionError("no count of DELEGRETURN")


def fio(name, directory, *options):
    """One fio job in the directory; what it wrote is verified by itself."""
    shell(f"fio --name={name} --directory=. --group_reporting "
          f"--output={directory}/{name}.fio " + " ".join(options), directory)


def ganesha_1375(directory):
    """Write a file, rename it over another, cat; then git's clone."""
    for length in (1, 16, 43, 44, 45, 4000):
        for number in range(3):
            text = (str(number) * length)[:length]
            said = shell(f"echo {text} > foo.lock; mv foo.lock foo; cat foo",
                         directory)
            equal(said, text + "\n", f"cat after rename {number}")
    shell("export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b "
          "GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b HOME=$PWD; "
          "git init -q one; cd one; seq 999 > numbers; git add numbers; "
          "git commit -qm one; git config some.key 'a longer value'; "
          "git config some.key 'another value, longer still'; "
          "git config some.key | grep -q still; cd ..; "
          "git clone -q one two; cmp one/numbers two/numbers; "
          "cd two; git fsck --strict; git status --porcelain", directory)
    return f"git {shell('git --version', directory).split()[-1]}"


def ganesha_1226(directory):
    """tac of a file that the client has not cached, beside cat of it."""
    count = (TAC_MIB << 20) // LINE
    lines = [f"{number:0{LINE - 1}}\n" for number in range(count)]
    (directory / "lines").write_text("".join(lines), encoding="ascii")
    seconds = {}
    for program in ("cat", "tac"):
        forget_pages()
        began = time.monotonic()
        said = shell(f"{program} lines", directory)
        seconds[program] = time.monotonic() - began
        wanted = lines if program == "cat" else reversed(lines)
        equal(said == "".join(wanted), True, f"what {program} printed")
    rate = {name: TAC_MIB / took for name, took in seconds.items()}
    return (f"tac {rate['tac']:.1f} MiB/s, cat {rate['cat']:.1f} MiB/s")


MAKEFILE = """parts := $(patsubst %.c,%.o,$(wildcard part*.c))
all: $(parts)
\t$(CC) -o program main.c $(parts)
%.o: %.c
\t$(CC) -c -o $@ $<
"""


def ganesha_988(directory):
    """A parallel build with empty headers, and READs of an empty file."""
    parts = range(6)
    (directory / "Makefile").write_text(MAKEFILE, encoding="ascii")
    for number in parts:
        (directory / f"empty{number}.h").touch()
        (directory / f"part{number}.c").write_text(
            f'#include "empty{number}.h"\n'
            f"int part{number}(void) {{ return {number}; }}\n",
            encoding="ascii")
    calls = " + ".join(f"part{number}()" for number in parts)
    names = "".join(f"int part{number}(void);\n" for number in parts)
    (directory / "main.c").write_text(
        f"{names}int main(void) {{ return {calls}; }}\n", encoding="ascii")
    forget_pages()
    # The READ that was not answered: 8192 bytes at 0 of an empty file.
    shell("for i in 0 1 2; do dd if=empty$i.h of=read$i iflag=direct bs=8192 "
          "status=none; test ! -s read$i; done", directory)
    shell("make -s -j 4 all; set +e; ./program; test $? = 15", directory)
    return "6 files by make -j 4"


def ganesha_1323(directory):
    """Stable writes at once into one file, which is truncated meanwhile."""
    (directory / "one").touch()
    shell("for i in 1 2 3 4; do "
          "dd if=/dev/zero of=one bs=4096 count=150 seek=$((i * 200)) "
          "oflag=dsync conv=notrunc status=none & "
          "dd if=/dev/zero of=other$i bs=64k count=20 oflag=direct "
          "conv=fsync status=none & done; "
          "for i in $(seq 30); do truncate -s $((i * 99999)) one; "
          "chmod 600 one; done; wait", directory)
    for number in range(1, 5):
        equal((directory / f"other{number}").stat().st_size, 20 << 16,
              f"size of other{number}")
    return "8 writers"


def ganesha_1280(directory):
    """Many files, reads and writes, some with fsync; all is verified."""
    fio("mix", directory, "--rw=randrw --bs=4k-64k --numjobs=4 --nrfiles=8",
        "--filesize=1m --io_size=3m --fsync=16 --unlink=0",
        "--verify=crc32c --verify_fatal=1")
    return "4 jobs, 32 files"


def tracker_69347(directory):
    """Random asynchronous reads by fio."""
    fio("async", directory, "--rw=write --bs=1m --size=16m --end_fsync=1")
    forget_pages()
    fio("async", directory, "--rw=randread --ioengine=libaio --direct=1",
        "--iodepth=16 --bs=4k --size=16m --io_size=8m")
    return "iodepth 16"


def tracker_80503(directory):
    """ls again and again: a new Linux asks for a directory delegation."""
    for number in range(40):
        (directory / f"file{number}").touch()
    for number in range(30):
        if number % 10 == 0:
            forget_pages()
        equal(len(shell("ls -l", directory).splitlines()), 41, "lines of ls")
    return f"30 rounds, Linux {Path('/proc/version').read_text().split()[2]}"


def ganesha_1382(directory):
    """Appends, one after the other, with a write delegation."""
    before = returned()
    shell("touch file1; echo data1 >> file1; echo data2 >> file1", directory)
    shell("mv file1 file2; echo data3 >> file2; ls -l; cat file2 > copy",
          directory)
    equal((directory / "copy").read_text(encoding="ascii"),
          "data1\ndata2\ndata3\n", "the file")
    shell("rm file2 copy; ls", directory)
    equal([path.name for path in directory.iterdir()], [], "what is left")
    return f"3 appends, {returned() - before} delegations returned"


def ganesha_1392(directory):
    """fio's sequential writes with a write delegation."""
    before = returned()
    fio("seq_write", directory, "--rw=write --bs=1M --size=16M --numjobs=1",
        "--runtime=2 --time_based --end_fsync=1")
    forget_pages()
    equal(len((directory / "seq_write.0.0").read_bytes()), 16 << 20, "bytes")
    (directory / "seq_write.0.0").unlink()
    return f"2 s, {returned() - before} delegations returned"


def ganesha_1388(directory):
    """Opens, writes and looks at files that others open and look at, too."""
    names = [directory / f"shared{number}" for number in range(4)]
    before = returned()
    end = time.monotonic() + 6
    rounds = 0
    draw = random.Random(rounds)
    while time.monotonic() < end or rounds < 8:
        path = draw.choice(names)
        with open(path, "r+b" if path.exists() else "w+b") as file:
            file.write(b"%015d\n" % rounds)
            file.flush()
            path.stat()
            file.seek(0)
            equal(len(file.read()), 16, "bytes read back")
        path.stat()
        rounds += 1
    return f"{rounds} rounds, {returned() - before} delegations returned"


def step(top, name):
    """How one of them went."""
    directory = top / name
    directory.mkdir(parents=True)
    began = time.monotonic()
    try:
        note = globals()[name](directory)
        went = "passes"
    except (AssertionError, OSError, subprocess.SubprocessError) as err:
        note, went = "", f"fails: {err}"
    return {"went": went, "note": note,
            "seconds": round(time.monotonic() - began, 1)}


def alone(top, name):
    """In a process of its own, which can be killed when it hangs."""
    try:
        done = subprocess.run(
            [sys.executable, "-B", __file__, top, name],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            timeout=LIMIT_S, check=True)
    except subprocess.TimeoutExpired:
        return {"went": f"fails: no end within {LIMIT_S} s", "note": "",
                "seconds": LIMIT_S}
    return json.loads(done.stdout.splitlines()[-1])[name]


def main():
    top, names = Path(sys.argv[1]), sys.argv[2:]
    how = step if len(names) == 1 else alone
    print("\n" + json.dumps({name: how(top, name) for name in names}))


main()
