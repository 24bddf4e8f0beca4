# SPDX-License-Identifier: LGPL-3.0-or-later
"""The calls of libcephfs that a READ or WRITE becomes, as (kind, offset,
length): tests use it on both sides to tell which one a fault has hit."""
import itertools

OBJECT = 128 << 10      # of the folders that faults.small_objects() makes
CHUNK = 1 << 20         # what one READ asks for
BLOCK = 4096

# Where the functions of injected_errors.py begin, so that one's rules do not
# concern another's file; those for reads past all that the others read.
PLACES = {"writes": 0, "stale": 2 << 20, "buffered": 3 << 20,
          "reads": 64 << 20}


def calls_of(kind, offset, length, size=OBJECT):
    """A READ is cut where an object ends, a WRITE is not."""
    end = offset + length
    borders = [] if kind == "write" else range(
        (offset // size + 1) * size, end, size)
    edges = [offset, *borders, end]
    return [(kind, a, b - a) for a, b in itertools.pairwise(edges)]


def all_calls_of(kind, offset, length):
    """And those for the rest of a WRITE that was halved, and halved again."""
    calls = calls_of(kind, offset, length)
    while kind == "write" and length > 1:
        offset += (length + 1) // 2
        length //= 2
        calls.append((kind, offset, length))
    return calls
