# SPDX-License-Identifier: LGPL-3.0-or-later
"""Parts of ganesha-ceph-async-check that need no cluster: how answers are
judged, what removes secrets, what ends children that hang.
"""
import argparse
import contextlib
import errno
import json
import re
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from casync_check import (
    capabilities, cluster, collect, config, exports, finding, host, installed,
    progress, reader, recovery, redact, surroundings)

TOP = Path(__file__).parents[2]
BLOCK = {"name": "EXPORT", "file": "f", "line": 1, "blocks": [], "keys": []}


def key(name, *values, secret=False):
    return {"name": name, "file": "f", "line": 2, "secret": secret,
            "values": list(values)}


def made_config(refused=None, parameters=None, module=None):
    """One good export, as reader.py would return it."""
    fsal = {**BLOCK, "name": "FSAL", "line": 3,
            "keys": [key("Name", "CEPH_ASYNC"), key("User_Id", "me")]}
    export = {**BLOCK, "blocks": [fsal],
              "keys": [key("Export_Id", "7"), key("Path", "/p"),
                       key("Access_Type", "RW")]}
    values = {"User_Id": "me", "Filesystem": None, "Object_Size": 0,
              "Data_Pool": None, "Ceph_Option": None, "Cmount_Path": None}
    return config.Config(
        {"fsal": "CEPH_ASYNC", "blocks": [export], "said": [],
         "versions": {"refused": refused, "ganesha_built": "9.14"},
         "module": {"values": module or {}, "said": []},
         "exports": [{"file": "f", "line": 3, "values": values,
                      "said": []}]},
        {"parameters": parameters or {}}, "f", False)


ARGUMENTS = argparse.Namespace(timeout=5, write_test=True, offline=False)

FILE_SYSTEM = {"name": "cephfs", "id": 1, "preset": True, "pools": [2],
               "session_autoclose": 300, "ranks": 1, "states": ["up:active"]}
GOOD = {"conf": True, "options": True, "connect": True,
        "filesystems": [FILE_SYSTEM],
        "pools": {"flags": [], "pools": [
            {"id": 2, "name": "data", "flags": ["hashpspool"]}]},
        "health": {"checks": {}}, "mount": True, "path": True,
        "statfs": {"f_frsize": 1, "f_blocks": 100, "f_bavail": 90},
        "mds-write": {"may": True},
        "layout": {"pool_name": "data", "pool_namespace": ""},
        "osd": {"read": True, "write": True}, "write-test": True}


def findings(made, errors=(), hangs_in=None, **different):
    """For the answers of a good export, with these differences."""
    lines = []
    errors = dict(errors)
    for step, result in {**GOOD, **different}.items():
        lines.append(json.dumps({"begin": step}))
        if step == hangs_in:
            break
        lines.append(json.dumps(
            {"end": step, "errno": errors[step], "text": "an error"}
            if step in errors else
            {"end": step, "errno": 0, "result": result}))
        if step in errors and step in ("connect", "mount", "options"):
            break
    answers = cluster.Answers("\n".join(lines))
    answers.stderr = ""
    export, values = made.our_exports()[0]
    one = cluster.Export(made, export, values, ARGUMENTS)
    return cluster.judged(one, answers)


def judged(**different):
    return [found.code for found in findings(made_config(), **different)]


def test_good_answers():
    assert judged() == []


def pools(*flags, of_all=()):
    return {"flags": list(of_all), "pools": [
        {"id": 2, "name": "data", "flags": list(flags)}]}


@pytest.mark.parametrize("code, answers", [
    ("no-monitor", {"errors": {"connect": errno.ETIMEDOUT}}),
    ("no-monitor", {"hangs_in": "connect"}),
    ("not-connected", {"errors": {"connect": errno.EIO}}),
    ("not-accepted", {"errors": {"connect": errno.EACCES}}),
    ("probe-failed", {"errors": {"options": errno.EINVAL}}),
    ("capability-mon", {"errors": {"filesystems": errno.EACCES}}),
    ("no-mds", {"filesystems": [{**FILE_SYSTEM, "states": []}]}),
    ("full", {"pools": pools(of_all=("full",))}),
    ("pool-full", {"pools": pools("full_quota")}),
    ("pool-nearly-full", {"pools": pools("nearfull")}),
    ("mount-hangs", {"hangs_in": "mount"}),
    ("not-mounted", {"errors": {"mount": errno.EIO}}),
    ("no-path", {"errors": {"path": errno.ENOENT}}),
    ("no-path", {"path": False}),
    ("no-answer", {"hangs_in": "mds-write"}),
    ("no-answer", {"hangs_in": "layout"}),
    ("space", {"statfs": {"f_frsize": 1, "f_blocks": 100, "f_bavail": 4}}),
    ("capability-osd", {"osd": {"read": False, "write": False}}),
    ("write-test", {"errors": {"write-test": errno.EIO}}),
    ("write-test", {"write-test": False}),
    ("write-test", {"hangs_in": "write-test"}),
    ("health", {"health": {"checks": {"MON_CLOCK_SKEW": {
        "summary": {"message": "clock skew"}}}}}),
])
def test_answers_are_judged(code, answers):
    assert judged(**answers) == [code]


@pytest.mark.parametrize("of_all, of_some, command", [
    ("None", "RW", "mds 'allow rw fsname=others path=/p' "
     "osd 'allow rw tag cephfs data=others'"),
    ("RO", None, "mds 'allow r fsname=others path=/p' "
     "osd 'allow r tag cephfs data=others'"),
    ("RW", "RO", "mds 'allow rw ")])
def test_capabilities_for_whom_it_serves(of_all, of_some, command):
    """Of a default file system that has another name, too: the command takes
    all other capabilities away."""
    made = made_config()
    block = made.exports()[0]
    block.keys[-1]["values"] = [of_all]
    if of_some:
        block.blocks.append(config.Block(
            {**BLOCK, "name": "CLIENT",
             "keys": [key("Clients", "a"), key("Access_Type", of_some)]}))
    found, = findings(made, osd={"read": False, "write": False},
                      filesystems=[{**FILE_SYSTEM, "name": "others"}])
    assert found.code == "capability-osd" and command in found.command


@pytest.mark.parametrize("preset, block", [
    ("one", {"name": "RADOS_KV", "keys": [key("UserId", "me")]}),
    ("one", {"name": "EXPORT", "keys": [key("Export_Id", "9")],
             "blocks": [{**BLOCK, "name": "FSAL", "line": 9, "keys": [
                 key("Name", "CEPH"), key("User_Id", "me")]}]})])
def test_no_command_if_somebody_else_is_the_user(preset, block):
    """What that needs is not known: the command would take it away."""
    made = made_config()
    assert capabilities.grant(made, "me", preset)[1]
    made.blocks.append(config.Block({**BLOCK, **block}))
    sentence, command = capabilities.grant(made, "me", preset)
    assert not command
    assert "export 9" in sentence or "RADOS_KV" in sentence


def test_the_default_file_system_is_not_the_one_of_the_export():
    made = made_config()
    made.our_exports()[0][1]["Filesystem"] = "fs2"
    fsal = config.Block({**BLOCK, "name": "FSAL", "line": 4,
                         "keys": [key("Name", "CEPH_ASYNC")]})
    made.blocks.append(config.Block({**BLOCK, "keys": [key("Path", "/b")]}))
    made.blocks[-1].blocks.append(fsal)
    made.read["exports"].append({
        "file": "f", "line": 4, "said": [],
        "values": {**made.our_exports()[0][1], "Filesystem": None}})
    found = findings(made, errors={"mount": errno.EACCES}, filesystems=[
        {**FILE_SYSTEM, "name": "one"},
        {**FILE_SYSTEM, "name": "fs2", "preset": False}])
    assert "fsname=fs2 path=/p, allow r fsname=one path=/b" in \
        found[0].command


@pytest.mark.parametrize("own, client, codes", [
    ("UDP", None, ["no-access"]), ("UDP", "TCP", []), ("", None, ["no-access"]),
    ("TCP", None, [])])
def test_a_transport_of_a_client(own, client, codes):
    made = made_config()
    export = made.exports()[0]
    export.keys += [key("Pseudo", "/p"), key("Transports", own),
                    key("Protocols", "4")]
    if client:
        export.blocks.append(config.Block({**BLOCK, "name": "CLIENT", "keys": [
            key("Clients", "a"), key("Access_Type", "RW"),
            key("Transports", client)]}))
    found = [one.code for one in exports.findings(made)]
    assert [code for code in found if code == "no-access"] == codes


@pytest.mark.parametrize("path, printed", [
    ("/o'brien", "path=\"/o'\"'\"'brien\""), ("/sp ace", 'path="/sp ace"'),
    ("/données", 'path="/données"')])
def test_a_path_is_quoted(path, printed):
    """For the shell, and for Ceph."""
    made = made_config()
    made.exports()[0].keys[1]["values"] = [path]
    assert printed in capabilities.grant(made, "me", "one")[1]


@pytest.mark.parametrize("protocols, needed", [("3", []), ("4", ["q"])])
def test_without_nfsv4_no_pseudo_is_needed(protocols, needed):
    made = made_config()
    made.exports()[0].keys.append(key("Pseudo", "/p"))
    made.blocks.append(config.Block({**BLOCK, "keys": [
        key("Pseudo", "/p/q"), key("Protocols", protocols)]}))
    assert [folder for folder, _ in exports.junctions(
        made, made.exports()[0])] == needed


@pytest.mark.parametrize("missing", [["q/r"], []])
def test_a_pseudo_below_another(missing):
    """Of a third one that lies deeper the second has the folder."""
    made = made_config()
    made.exports()[0].keys.append(key("Pseudo", "/p/"))
    for pseudo in "/p/q/r", "/p/q/r/s", "/pq":
        made.blocks.append(config.Block(
            {**BLOCK, "keys": [key("Pseudo", pseudo)]}))
    found = [(one.severity, one.code) for one in findings(
        made, junctions=missing)]
    assert found == [("error", "pseudo-nested")] * len(missing)
    assert [folder for folder, _ in exports.junctions(
        made, made.exports()[0])] == ["q/r"]


def test_capabilities_of_all_exports_of_the_user():
    """The command for one alone would take the other's away."""
    made = made_config()
    (_, values), = made.our_exports()
    others = (("/q", {"Object_Size": 1}, 4), ("/p", {"Data_Pool": "d"}, 5),
              ("/r", {"Filesystem": "fs2"}, 6), ("/s", {"User_Id": "you"}, 7))
    for path, different, line in others:
        fsal = config.Block({**BLOCK, "name": "FSAL", "line": line,
                             "keys": [key("Name", "CEPH_ASYNC")]})
        block = config.Block({**BLOCK, "keys": [
            key("Path", path), key("Access_Type",
                                   "RO" if path == "/r" else "RW")]})
        block.blocks.append(fsal)
        made.blocks.append(block)
        made.read["exports"].append({"file": "f", "line": line, "said": [],
                                     "values": {**values, **different}})
    assert len(made.our_exports()) == 5
    assert capabilities.grant(made, "me", "one")[1] == (
        "ceph auth caps client.me mon 'allow r fsname=one, allow r fsname=fs2'"
        " mds 'allow rwp fsname=one path=/p, allow rwp fsname=one path=/q, "
        "allow r fsname=fs2 path=/r' osd 'allow rw tag cephfs data=one, "
        "allow r tag cephfs data=fs2'")


@pytest.mark.parametrize("answers", [
    {"filesystems": []}, {"hangs_in": "mount"},
    {"osd": {"read": False, "write": False}}])
def test_admin_keeps_its_capabilities(answers):
    """With those of an export it could not take the others back."""
    made = made_config()
    for user, command in (("me", "ceph auth caps client.me "), (None, "")):
        made.our_exports()[0][1]["User_Id"] = user
        found = findings(made, **answers)[0]
        assert found.severity == "error"
        assert found.command.startswith(command) and (user or not
                                                      found.command)
        assert ("takes all other capabilities away" in found.way_out) == \
            bool(user)


@pytest.mark.parametrize("namespace, command", [
    (None, "--pool nfs add "), ("some", "--pool nfs --ns some add ")])
def test_the_way_to_a_grace_database(namespace, command):
    made = made_config(parameters={"RecoveryBackend": "rados_cluster"})
    given = [key("pool", "nfs"), key("nodeid", "a")]
    given += [key("namespace", namespace)] if namespace else []
    made.blocks.append(config.Block(
        {**BLOCK, "name": "RADOS_KV", "keys": given}))
    ends = [{"end": "connect", "errno": 0, "result": True},
            {"end": "recovery-pool", "errno": 0,
             "result": {"read": True, "write": True}},
            {"end": "grace", "errno": errno.ENOENT, "text": "none"}]
    found = list(recovery.findings(
        made, ARGUMENTS,
        lambda *_: cluster.Answers("\n".join(map(json.dumps, ends))), 5))
    ways = [one.command for one in found if one.code == "no-grace"]
    assert ways == [f"ganesha-rados-grace {command}a"]


def test_a_mount_hangs_without_an_mds():
    assert judged(hangs_in="mount",
                  filesystems=[{**FILE_SYSTEM, "states": ["up:replay"]}]) == [
        "no-mds", "mount-hangs"]


def test_a_user_who_hangs_is_not_tried_again(monkeypatch):
    asked = []

    def hangs(request, *_):
        asked.append(request)
        answers = cluster.Answers('{"begin": "conf"}')
        answers.stderr = ""
        return answers

    monkeypatch.setattr(cluster, "probe", hangs)
    made = made_config()
    pair, = made.our_exports()
    monkeypatch.setattr(made, "our_exports", lambda: [pair] * 3)
    assert [found.code for found in cluster.findings(made, ARGUMENTS)] == [
        "probe-failed", "not-tried", "not-tried"]
    assert len(asked) == 1


def test_a_child_that_hangs_is_killed(capfd):
    began = time.monotonic()
    status, out, _ = progress.run(
        [sys.executable, "-c", "import time; print(5, flush=True); "
                               "time.sleep(60)"], "sleeping", 2.5)
    assert (status, out) == (None, "5\n")
    assert time.monotonic() - began < 10
    assert capfd.readouterr().err == "sleeping: waiting, 2.5 s at most\n"


def test_a_child_gets_its_input():
    assert progress.run(["cat"], "cat", 10, "some words") == (
        0, "some words", "")


# The last is what a %url without RADOS_URLS { } may do to Ganesha 9.14.
@pytest.mark.parametrize("code, child_does, words", [
    ("file-slow", "import time; time.sleep(60)", "within 1 s"),
    ("reader-failed", "raise SystemExit('what it said')", "what it said"),
    ("reader-failed", "import os; os.kill(os.getpid(), 11)",
     "signal 11, as ganesha.nfsd would")])
def test_a_reader_that_fails(tmp_path, monkeypatch, code, child_does, words):
    child = tmp_path / "child.py"
    child.write_text(child_does, encoding="utf-8")
    monkeypatch.setattr(reader, "CHILD", child)
    monkeypatch.setattr(installed, "our_library", lambda _: child)
    monkeypatch.setattr(installed, "ganesha_library",
                        lambda: Path("/x/libganesha_nfsd.so.9.99"))
    with pytest.raises(reader.CannotCheck) as failure:
        reader.read_config(child, 1)
    found, = failure.value.findings
    assert found.code == code
    assert words in found.what
    assert ("9.99" in found.what) == (code == "reader-failed")


@pytest.mark.parametrize("code, missing", [
    ("no-ganesha", "ganesha_library"), ("no-reader", "our_library")])
def test_what_is_not_installed(tmp_path, monkeypatch, code, missing):
    nothing = {"ganesha_library": lambda: None,
               "our_library": lambda _: tmp_path / "none"}
    monkeypatch.setattr(installed, "ganesha_library",
                        lambda: tmp_path / "libganesha_nfsd.so.9.14")
    monkeypatch.setattr(installed, missing, nothing[missing])
    path = tmp_path / "ganesha.conf"
    path.touch()
    with pytest.raises(reader.CannotCheck) as failure:
        reader.read_config(path, 1)
    assert [found.code for found in failure.value.findings] == [code]


def test_a_version_that_does_not_fit():
    found, = host.findings(made_config(refused="this is Ganesha 9.15"))
    assert (found.code, found.severity) == ("version", "error")
    assert "this is Ganesha 9.15" in found.what


@pytest.mark.parametrize("api, chunk, codes", [
    (14, None, []), (14, "128", []),
    (12, None, ["kept-listings", "directory-delegations"]),
    (12, "128", ["kept-listings", "directory-delegations"]),
    (12, "0", ["directory-delegations"])])
@pytest.mark.parametrize("block", ["MDCACHE", "CacheInode"])
def test_an_old_ganesha(api, chunk, codes, block):
    made = made_config(parameters={"Fsal_Api": api})
    if chunk is not None:
        made.blocks.append(config.Block(
            {**BLOCK, "name": block, "keys": [key("Dir_Chunk", chunk)]}))
    found = list(surroundings.old_ganesha(made))
    assert [one.code for one in found] == codes
    if codes and chunk != "0":
        assert f"Dir_Chunk = {chunk or '(preset)'}" in found[0].what


@pytest.mark.parametrize("api, allowed, asked, found", [
    (12, True, "RW", True), (12, True, "None", False), (12, True, None, False),
    (12, False, "RW", False), (14, True, "RW", False)])
def test_delegations_of_an_old_ganesha(api, allowed, asked, found):
    made = made_config(parameters={"Fsal_Api": api, "Delegations": allowed})
    if asked:
        made.exports()[0].keys.append(key("Delegations", asked))
    codes = [one.code for one in surroundings.old_ganesha(made)]
    assert ("no-delegations" in codes) == found


@pytest.mark.parametrize("synchronized, cache, codes", [
    (False, 1, ["clock"]), (False, 0, []), (True, 1, []), (None, 1, [])])
def test_the_clock(monkeypatch, synchronized, cache, codes):
    monkeypatch.setattr(host, "clock_is_synchronized", lambda: synchronized)
    made = made_config(module={"Cache_Bytes": cache})
    assert [found.code for found in host.findings(made)] == codes
    # With -compat the file is read under two names, and has exports of one.
    made.read["exports"] = []
    assert not list(host.findings(made))


@pytest.mark.parametrize("status, answer, said", [
    (0x2001, 0, True),          # STA_PLL and STA_NANO
    (0x2041, 5, False),         # STA_UNSYNC as well; TIME_ERROR
    (0x2001, -1, None)])        # it may not be asked
def test_what_the_kernel_says_of_the_clock(monkeypatch, status, answer, said):
    """In the `status` of struct timex, behind `modes` and four longs."""
    def adjtimex(timex):
        assert not any(timex.raw), "it would set something"
        struct.pack_into("=i4x4qi", timex, 0, 0, 1, 2, 3, 4, status)
        return answer
    monkeypatch.setattr(host.ctypes, "CDLL",
                        lambda _: SimpleNamespace(adjtimex=adjtimex))
    assert host.clock_is_synchronized() is said


def test_a_libc_without_that_question(monkeypatch):
    monkeypatch.setattr(host.ctypes, "CDLL", lambda _: SimpleNamespace())
    assert host.clock_is_synchronized() is None


def test_without_python_for_ceph(monkeypatch):
    monkeypatch.setattr(cluster.importlib.util, "find_spec", lambda _: None)
    found, = cluster.findings(made_config(), ARGUMENTS)
    assert (found.code, found.severity) == ("no-python-ceph", "warning")
    assert "rados and cephfs" in found.what


@pytest.mark.parametrize("monitors, found", [
    ("10.0.0.1", [("10.0.0.1", 3300)]),
    ("a.example, b.example:6789", [("a.example", 3300), ("b.example", 6789)]),
    ("[v2:10.0.0.1:3300/0,v1:10.0.0.1:6789/0]",
     [("10.0.0.1", 3300), ("10.0.0.1", 6789)])])
def test_addresses_of_monitors(tmp_path, monitors, found):
    path = tmp_path / "ceph.conf"
    path.write_text(f"[global]\n\tmon_host = {monitors}\n", encoding="utf-8")
    assert cluster.monitors(path) == found


def test_order_status_and_table():
    place = finding.Place("f", 5, "EXPORT", "Path")
    note = finding.Finding("note", "a", finding.Place(), "one")
    warning = finding.Finding("warning", "b", place, "two " * 40)
    error = finding.Finding("error", "c", place, "three", "do it", "ceph " * 30)
    assert finding.in_order([note, warning, error, note]) == [
        error, warning, note]
    assert [finding.status(found) for found in
            ([], [note], [note, warning], [note, warning, error])] == [
                0, 0, 1, 2]
    shown = finding.table([error, warning, note]).splitlines()
    assert shown[0] == "ERROR     f:5 EXPORT Path  [c]"
    assert "          " + "ceph " * 30 in shown, "commands are not wrapped"
    assert max(len(line) for line in shown if "ceph" not in line) <= 78
    assert shown[-1] == "1 error, 1 warning, 1 note"


AES128 = "AQBzYW1wbGVzYW1wbGVzYW1wbGVzYW1wbA=="
AES256 = "AgAB9QNrpLhfNSAAHdBSWkcemtVIRe5dt/24f+hmVFAkA4pt/sRT1J1hNn8="


@pytest.mark.parametrize("text, shown", [
    (f"key = {AES128}", "key = (removed)"),
    (f"found {AES256}, and more", "found (removed), and more"),
    ('Secret_Access_Key = "a b";', 'Secret_Access_Key = "(removed)";'),
    ("secret_access_key =\n\t'x';", "secret_access_key =\n\t'(removed)';"),
    ("PASSWORD: letmein\nnext", "PASSWORD: (removed)\nnext"),
    ("rados://me:pw@pool/ns", "rados://(removed)@pool/ns"),
    ("known is known", "(removed) is (removed)"),
    ("Max_Read = 4096; keyring = /etc/ceph/k;",
     "Max_Read = 4096; keyring = /etc/ceph/k;"),
    (f"{'5A' * 32}\n", "(removed)\n"),
    (f'Handle_Keys = "{"5a" * 32}";', 'Handle_Keys = "(removed)";'),
    ("session 'ganesha-0x4ca5dc4637b43a2c'",
     "session 'ganesha-0x4ca5dc4637b43a2c'"),
])
def test_secrets_are_removed(text, shown):
    redactor = redact.Redactor(["known", None, ""])
    assert redactor.text(text) == shown
    assert redactor.tree({"a": [text]}) == {"a": [shown]}


def test_secrets_in_json_go_by_their_name():
    redactor = redact.Redactor()
    assert redactor.tree({"name": "Admin_Password", "values": ["x"]}) == {
        "name": "Admin_Password", "values": ["(removed)"]}
    assert redactor.tree({"secret": "x", "key": ""}) == {
        "secret": "(removed)", "key": ""}


def test_a_secret_is_kept_apart():
    blocks = [{**BLOCK, "keys": [key("Secret_Access_Key", "x", secret=True)],
               "blocks": []}]
    assert config.take_secrets(blocks) == {("f", 2): "x"}
    assert blocks[0]["keys"][0]["values"] == []


def codes_in_the_source():
    """The second word of each finding."""
    found = set()
    for path in (TOP / "check/casync_check").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        found.update(re.findall(
            r"(?:ERROR|WARNING|NOTE|severity), \"([a-z-]+)\"",
            re.sub(r"\s+", " ", text)))
        found.update(re.findall(r"_failed\( ?\"([a-z-]+)\"",
                                re.sub(r"\s+", " ", text)))
    return found | {"capability-mon", "capability-mds", "capability-osd",
                    "recovery-no-nodeid", "recovery-no-namespace"}


@pytest.mark.parametrize("file", ["docs/check.md", "tests"])
def test_each_finding_has_its_test_and_its_line(file):
    if file == "tests":
        text = "".join(Path(__file__).with_name(name).read_text("utf-8")
                       for name in ("test_check.py", "test_check_parts.py"))
        wanted = '"{}"'
    else:
        text = (TOP / file).read_text(encoding="utf-8")
        wanted = "| `{}` |"
    codes = codes_in_the_source()
    assert len(codes) > 50
    assert {code for code in codes
            if wanted.format(code) not in text} == set()


@pytest.fixture
def endpoint():
    """A server on a port of its own that gets a function for its one client;
    the port."""
    servers = []

    def serve(answer):
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)

        def run():
            with contextlib.suppress(OSError), server.accept()[0] as client:
                client.recv(4096)
                answer(client)

        threading.Thread(target=run, daemon=True).start()
        return server.getsockname()[1]

    yield serve
    for server in servers:
        server.close()


def _drip(first):
    def answer(client):
        client.sendall(first)
        for _ in range(80):
            client.sendall(b"x")
            time.sleep(0.05)
    return answer


@pytest.mark.parametrize("first", [b"HTTP/1.1 200 OK\r\nx: ",
                                   b"HTTP/1.1 200 OK\r\n\r\na_total 1\n"])
def test_whoever_has_the_port_of_metrics_ends(endpoint, monkeypatch, first):
    """The whole has a deadline, not each piece."""
    monkeypatch.setattr(collect, "METRICS_S", 0.5, raising=False)
    began = time.monotonic()
    port = endpoint(_drip(first))
    monkeypatch.setattr(collect, "METRICS_BYTES", 200)
    collect._metrics(port)
    assert time.monotonic() - began < 2


def test_metrics_are_taken(endpoint):
    port = endpoint(lambda client: client.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\na_total 1\n"))
    assert collect._metrics(port) == "a_total 1\n"
    port = endpoint(lambda client: client.sendall(
        b"HTTP/1.1 404 Not Found\r\n\r\nnothing"))
    assert collect._metrics(port) == ""
    assert collect._metrics("none") == ""
