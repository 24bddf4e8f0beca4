# SPDX-License-Identifier: LGPL-3.0-or-later
"""Names: long, too long, not UTF-8."""
import errno
import os

from registry import case, drop_caches, equal, refused


@case()
def longest_name(d):
    name = "n" * 255
    (d / name).write_bytes(b"content")
    drop_caches()
    equal(os.listdir(d), [name], "names")
    equal((d / name).read_bytes(), b"content", "content")
    os.rename(d / name, d / ("m" * 255))
    equal(os.listdir(d), ["m" * 255], "names")


@case()
def name_too_long(d):
    name = d / ("n" * 256)
    refused(errno.ENAMETOOLONG, os.open, name, os.O_CREAT | os.O_WRONLY)
    refused(errno.ENAMETOOLONG, os.mkdir, name)
    equal(os.listdir(d), [], "names")


@case()
def utf8_names(d):
    names = ["größe", "日本語", "emoji-😀", "e\u0301", "\u00e9", "a b\tc\n",
             "-rf", "...", "%s%n", "back\\slash"]
    for name in names:
        (d / name).write_bytes(name.encode())
    drop_caches()
    equal(sorted(os.listdir(d)), sorted(names), "names")
    for name in names:
        equal((d / name).read_bytes(), name.encode(), "content")


@case()
def names_that_are_not_utf8(d):
    # NFSv4 lets a server refuse them; Ganesha by default does not.
    where = os.fsencode(d)
    name = b"caf\xe9-\xff\xfe"
    with open(where + b"/" + name, "wb") as file:
        file.write(b"content")
    drop_caches()
    equal(os.listdir(where), [name], "names")
    with open(where + b"/" + name, "rb") as file:
        equal(file.read(), b"content", "content")
    os.unlink(where + b"/" + name)
    equal(os.listdir(where), [], "names")
