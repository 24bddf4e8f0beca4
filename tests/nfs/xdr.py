# SPDX-License-Identifier: LGPL-3.0-or-later
"""XDR (RFC 4506): functions that encode one value, a Reader that decodes."""
import struct


def number(value):
    return struct.pack(">I", value)


def wide(value):
    """An unsigned hyper."""
    return struct.pack(">Q", value)


def opaque(data):
    """Data of variable length, or a string."""
    return number(len(data)) + data + bytes(-len(data) % 4)


class Reader:
    """Decodes DATA in order; `at` is the offset of the next value."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, form):
        """The values of a struct format; one value comes alone."""
        values = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(">" + form)
        return values if len(values) > 1 else values[0]

    def number(self):
        return self.take("I")

    def hyper(self):
        return self.take("Q")

    def skip(self, count):
        self.at += count

    def fixed(self, count):
        """Data of that length, without its padding."""
        end = self.at + count
        if end > len(self.data):
            raise EOFError(f"{count} bytes at {self.at} of {len(self.data)}")
        data = self.data[self.at:end]
        self.at = end + -count % 4
        return data

    def opaque(self):
        return self.fixed(self.number())
