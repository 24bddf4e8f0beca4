# SPDX-License-Identifier: LGPL-3.0-or-later
"""A 200 MiB sparse file of 1,000 random extents against its model:
sparse_model.py FILE

Ends with status 0 and says "equal" or what differs; any other status means
that there is no result.
"""
import os
import random
import sys

from registry import MIB, difference, drop_caches, opened, write_at

SIZE = 200 * MIB
EXTENTS = 1000
LARGEST = 64 << 10
READ = MIB


def extents(seed):
    rng = random.Random(seed)
    for _ in range(EXTENTS):
        size = rng.randint(1, LARGEST)
        yield rng.randrange(SIZE - size), rng.randbytes(size)


def main():
    path = sys.argv[1]
    model = bytearray(SIZE)
    with opened(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_DIRECT) as fd:
        os.ftruncate(fd, SIZE)
        for offset, data in extents(seed=200):
            write_at(fd, data, offset)
            model[offset:offset + len(data)] = data
    drop_caches()
    wrong = [f"size {os.stat(path).st_size}"] \
        if os.stat(path).st_size != SIZE else []
    for name, flags in (("direct", os.O_DIRECT), ("buffered", 0)):
        with opened(path, os.O_RDONLY | flags) as fd:
            for offset in range(0, SIZE, READ):
                try:
                    data = os.pread(fd, READ, offset)
                except OSError as err:
                    wrong.append(f"{name} read at {offset}: {err.strerror}")
                    continue
                if data != model[offset:offset + READ]:
                    wrong.append(f"{name} read at {offset}: " + difference(
                        data, model[offset:offset + READ]))
    os.unlink(path)
    print(f"sparse: {len(wrong)} of {2 * SIZE // READ} reads wrong; "
          f"first: {wrong[0]}" if wrong else "sparse: equal")


main()
