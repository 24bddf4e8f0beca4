# SPDX-License-Identifier: LGPL-3.0-or-later
"""ganesha-ceph-async-check against the running cluster: each finding is
provoked once.  What no cluster can be brought to in short is in
test_check_parts.py, which also sees that no finding is without a test.
"""
import contextlib
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import cephfs
import pytest
import rados

import ganesha_5_9
from casync_check import installed, reader
from lab_program import ceph, grace_tool, until
from refusals import NO_EXPORT
from test_every_key import CONF

PROGRAM = "ganesha-ceph-async-check"
# A note on every file.
OF_GANESHA = {"directory-delegations", "no-metrics"} \
    if ganesha_5_9.IS_OLD else set()
CONFIG = Path(__file__).parents[2] / "config"
SECRET = "AQBzYW1wbGVzYW1wbGVzYW1wbGVzYW1wbGVzYW1wbA=="
WORD = "a-secret-behind-its-name"
PLAIN = "a-secret-that-looks-like-nothing"

# Good in itself, so that a test sees its own finding alone.
METRICS = "" if ganesha_5_9.IS_OLD else "Enable_Metrics = true; "
CORE = f"NFS_CORE_PARAM {{{{ {METRICS}Enable_NLM = false; " \
    "Getattrs_In_Complete_Read = false; {core} }}"
LOCKS = "" if ganesha_5_9.IS_OLD else "Blocking_Locks = false; "
SCOPE = "" if ganesha_5_9.IS_OLD else 'Server_Scope = "all"; '
NFSV4 = f"NFSv4 {{{{ {LOCKS}{SCOPE}Lease_Lifetime = 20; Grace_Period = 90; " \
    "{nfsv4} }}"
BLOCK = "CEPH_ASYNC {{ {block} }}"
LISTINGS = "MDCACHE { Dir_Chunk = 0; }"     # Ganesha 5.9 asks for it
EXPORT = ("EXPORT {{ Export_Id = {number}; Path = {path}; Pseudo = {pseudo};"
          "\n {export} Access_Type = RW; Attr_Expiration_Time = 0;\n"
          "FSAL {{ Name = CEPH_ASYNC;\n{fsal} }} }}")


def written(folder, core="", nfsv4="", block="", more="", exports=({},)):
    """A configuration; each export is what differs from a good one."""
    block += "\nCache_Bytes = 0;"   # or else the clock matters
    parts = [CORE.format(core=core), NFSV4.format(nfsv4=nfsv4),
             BLOCK.format(block=block), more]
    for number, export in enumerate(exports, 7):
        parts.append(EXPORT.format(**{
            "number": number, "path": "/", "export": "",
            "pseudo": f"/p{number}",
            "fsal": "User_Id = someone;", **export}))
    parts.append(LISTINGS)
    path = folder / "ganesha.conf"
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
    path.chmod(0o600)
    return path


def check(path, *options, seconds=60, no_archive=False):
    """Status and findings, by their codes.  NO_ARCHIVE: it could not write
    that, which alone makes another status than the findings do."""
    done = subprocess.run(
        [PROGRAM, "--json", "-f", path, *options], text=True, timeout=seconds,
        stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.stdout, done.stderr
    read = json.loads(done.stdout)
    assert done.returncode == (3 if no_archive else read["status"])
    found = {found["code"]: found for found in read["findings"]}
    return done.returncode, {code: one for code, one in found.items()
                             if code not in OF_GANESHA
                             or one["severity"] == "warning"}


# --- the file alone

# What is written, the finding, its severity, and words that it has.
ALONE = {
    "key-unknown": ({"block": "Max_Reed = 4096;"}, "error", "Max_Reed"),
    "key-refused": ({"block": "Stable_Write = never;"}, "error",
                    "It must be one of data, fdatasync, full."),
    "keys-disagree": ({"block": "Max_Read = 4194304; "
                                "Max_Inflight_Bytes = 1048576;"}, "error",
                      "one request alone would exceed the limit"),
    "syntax": ({"block": "Max_Read = 4M;"}, "error", "4194304, not 4M"),
    "startup-message": ({"block": "Zerocopy = true;"}, "warning",
                        "has no effect"),
    "no-export": ({"exports": ()}, "warning", "no export of the file"),
    "no-fsal": ({"more": "EXPORT { Export_Id = 3; Path = /; Pseudo = /n; }"},
                "error", "export 3 has no FSAL"),
    "block-unknown": ({"more": "CEPH_ASINC { }"}, "warning", "CEPH_ASYNC"),
    "export-twice": ({"exports": ({}, {"pseudo": "/p7"})},
                     "error", "has Pseudo = /p7, as has"),
    "pseudo-nested": ({"exports": ({}, {"pseudo": "/p7/deep/er"},
                                   {"pseudo": "/p7/deep/er/est"})},
                      "note", "export 8, which must have the folder est"),
    "no-access": ({"exports": ({"export": "Access_Type = None; #"},)},
                  "error", "Access_Type = None"),
    "access-of-others": (
        {"exports": ({"export": "CLIENT { Clients = 10.0.0.0/8; "
                                "Access_Type = RO; }"},)},
        "note", "have Access_Type = RW"),
    "attributes-cached": (
        {"exports": ({"export": "Access_Type = RW; "
                                "Attr_Expiration_Time = 5; #"},)},
        "warning", "for 5 s"),
    "nfsv3-off": (
        {"core": "Protocols = 4;",
         "exports": ({"export": "Protocols = 3, 4;"},)},
        "warning", "enable_nfsv3: true"),
    "size-asked": ({}, "note", "at each READ"),
    "few-workers": ({"core": "RPC_Ioq_ThrdMax = 16;"}, "warning", "= 16"),
    "few-slots": ({"nfsv4": "Slot_Table_Size = 8;"}, "note", "= 8"),
    "few-inflight": ({"block": "Max_Inflight = 4;"}, "warning", "64 requests"),
    "no-grace-period": ({"nfsv4": "Graceless = true;"}, "warning", "restart"),
    "grace-short": ({"nfsv4": "Grace_Period = 5; #"}, "warning",
                    "less than Lease_Lifetime"),
    **({"locks-wait": ({}, "warning", "EIO")} if LOCKS else {}),
    "session-short": ({"block": "Session_Timeout = 30;"}, "warning", "= 110"),
    "delegations-shared": (
        {"nfsv4": "Delegations = true; RecoveryBackend = rados_cluster;",
         "more": "RADOS_KV { nodeid = a; namespace = b; }"},
        "warning", "several gateways"),
    "recovery-local": ({"more": "RADOS_KV { nodeid = a; namespace = b; }"},
                       "warning", "no effect"),
    **({"recovery-no-scope": (
        {"nfsv4": "RecoveryBackend = rados_cluster;",
         "more": "RADOS_KV { nodeid = a; namespace = b; }"},
        "warning", "give up their locks")} if SCOPE else {}),
    "recovery-no-nodeid": (
        {"nfsv4": "RecoveryBackend = rados_ng;",
         "more": "RADOS_KV { namespace = b; }"}, "warning", "host's name"),
    "recovery-no-namespace": (
        {"nfsv4": "RecoveryBackend = rados_ng;",
         "more": "RADOS_KV { nodeid = b; }"}, "warning", "kept apart"),
    "nlm-shared": (
        {"core": "Enable_NLM = true; #",
         "nfsv4": "RecoveryBackend = rados_cluster;",
         "more": "RADOS_KV { nodeid = a; namespace = b; }"},
        "warning", "NLM"),
    "user-admin": ({"exports": ({"fsal": ""},)}, "warning", "client.admin"),
    "user-shared": ({"exports": ({}, {"path": "/other"})}, "note", "7, 8"),
    "user-of-all": (
        {"exports": ({"fsal": 'User_Id = a; Cmount_Path = "/";'},
                     {"path": "/other",
                      "fsal": 'User_Id = a; Cmount_Path = "/";'})},
        "warning", "every file"),
    "secrets-differ": (
        {"exports": ({}, {"fsal": "User_Id = someone; "
                                  f'Secret_Access_Key = "{SECRET}";'})},
        "error", "export 8 has not the Secret_Access_Key of export 7"),
    "handle-keys": ({"block": 'Handle_Keys = "/nowhere/keys";'}, "error",
                    "No such file"),
    "no-handle-keys": ({"block": "Sign_Handles = true;"}, "error", "export 7"),
    "no-metrics": ({"core": "Enable_Metrics = false; #"}, "note", "metrics"),
    "no-plugin": ({"core": 'Plugins_Dir = "/nowhere";'}, "error",
                  "/nowhere/libfsalceph_async.so"),
    "fsal-ceph-too": (
        {"more": "EXPORT { Export_Id = 3; Path = /; Pseudo = /n; "
                 "FSAL { Name = CEPH; } }"}, "note", "FSAL_CEPH"),
}

# A line ends with the commented rest; what follows the '#' must be new lines.
ENDS = "#"


def told(case):
    """'#' in a case comments out a later value of the same key."""
    def text(value):
        return value.replace(ENDS, "#\n") if isinstance(value, str) else value
    return {key: tuple({name: text(one) for name, one in export.items()}
                       for export in value) if key == "exports"
            else text(value) for key, value in case.items()}


STATUS = {"error": 2, "warning": 1, "note": 0}
REPLACED = {"no-access": ("Access_Type = RW; Attr", "Attr"),
            "attributes-cached": ("Access_Type = RW; Attr_Expiration_Time "
                                  "= 0;", ""),
            "size-asked": ("Getattrs_In_Complete_Read = false; ", ""),
            "grace-short": ("Grace_Period = 90; ", ""),
            "locks-wait": (LOCKS, ""),
            "recovery-no-scope": (SCOPE, ""),
            "nlm-shared": ("Enable_NLM = false; ", ""),
            "no-metrics": ("Enable_Metrics = true; ", "")}


@pytest.mark.parametrize("code", ALONE)
def test_a_file(tmp_path, code):
    case, severity, words = ALONE[code]
    path = written(tmp_path, **told(case))
    if code in REPLACED:
        text = path.read_text(encoding="utf-8")
        assert REPLACED[code][0] in text
        path.write_text(text.replace(*REPLACED[code]), encoding="utf-8")
    status, found = check(path, "--offline")
    assert set(found) == {code}
    assert found[code]["severity"] == severity
    assert words in json.dumps(found[code])
    assert status == STATUS[severity]
    assert found[code]["place"]["file"] == str(path)


@pytest.mark.parametrize("change", [
    lambda text: text.rstrip().removesuffix("}"), lambda text: text + "}\n",
    lambda text: text.replace("{", "", 1)])
def test_a_brace(tmp_path, change):
    """Ganesha takes nothing of the file then: it removes all exports."""
    path = written(tmp_path)
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    status, found = check(path, "--offline")
    assert status == 2 and found["syntax"]["severity"] == "error"
    assert found["syntax"]["place"]["line"] > 0
    assert "a brace before it" in found["syntax"]["way_out"]


@pytest.mark.parametrize("exports, said, line", [
    (({}, {"pseudo": "/p7/"}), "has Pseudo = /p7, as has the export of ",
     "Pseudo = /p7/;"),
    (({}, {"number": "0x7"}), "has Export_Id = 7, as has the export of ",
     "Export_Id = 0x7;"),
    (({"export": "Tag = one;"},) * 2, "export 8 has Tag = one, as has",
     "Tag = one;"),
])
def test_two_exports_of_one_name(tmp_path, exports, said, line):
    """And of a number, however it is written.  The place is the second's."""
    path = written(tmp_path, exports=exports)
    status, found = check(path, "--offline")
    assert status == 2 and set(found) == {"export-twice"}
    assert said in found["export-twice"]["what"]
    lines = path.read_text(encoding="utf-8").splitlines()
    there = [number for number, text in enumerate(lines, 1) if line in text]
    assert found["export-twice"]["place"]["line"] == there[-1]


@pytest.mark.parametrize("export, said", [
    ({"export": "SecType = krb5p, kbr5i;"}, "krb5i was probably meant"),
    ({"export": "Squash = All_Sqash;"}, "All_Squash was probably meant"),
    ({"export": "Protocols = 4, 42;"}, "It takes 3, 4, NFS3"),
    ({"export": "CLIENT { Clients = a; Access_Type = WR; }"},
     "It takes None, RW, RO"),
    ({"export": "CLIENT { Clients = 10.1.2.0/33; Access_Type = RW; }"},
     "refuses Clients = 10.1.2.0/33: it is no ADDRESS"),
    ({"export": "CLIENT { Clients = fd00::1/129; Access_Type = RW; }"},
     "refuses Clients = fd00::1/129: it is no ADDRESS"),
    ({"export": "CLIENT { Clients = 10.0.0.0/255.0.0.0; }"},
     "refuses Clients = 10.0.0.0/255.0.0.0: it is no ADDRESS"),
    ({"export": "CLIENT { Clients = a, b; } CLIENT { Clients = b; }"},
     "refuses Clients = b: it is there twice"),
    ({"export": "CLIENT { Access_Type = RW; }"}, "it names nobody"),
    ({"number": "0"}, "Export_Id = 0: Ganesha does not serve it"),
    ({"path": "/d, /e"}, "Ganesha 9.14 crashes"),
    ({"export": "Path = /e;"}, "Parameter Path set more than once"),
    ({"pseudo": "/a, /b"}, "Pseudo"),
    ({"export": "Pseudo = /again;"}, "Parameter Pseudo set more than once"),
    ({"export": "FSAL { Name = CEPH; }"}, "Parameter FSAL set more than once"),
    ({"export": "\nAnonymous_Uid = nobody;\n"},
     '"key": "Anonymous_Uid"'),
    ({"export": "Read_Access_Check_Policy = never;"}, "(never)"),
    ({"export": "PrivilegedPort = maybe;"}, '"key": "PrivilegedPort"'),
    ({"export": "MaxRead = 100;"}, '"key": "MaxRead"'),
    ({"export": "\nFilesystem_Id = 192;\n"},
     '"key": "Filesystem_Id"'),
    ({"export": 'CLIENT { Clients = "10.0.0.0/8"; }'}, "10.0.0.0/8"),
    ({"fsal": 'User_Id = "";'}, "User_Id is empty"),
    ({"number": "65536"}, "from 1 to 65535"),
])
def test_values_of_an_export(tmp_path, export, said):
    """The second export alone has it."""
    if ganesha_5_9.IS_OLD and "/129" in export.get("export", ""):
        pytest.skip("5.9's parser takes no such word")
    path = written(tmp_path, exports=({}, export))
    status, found = check(path, "--offline")
    assert status == 2 and "key-refused" in found
    assert said in json.dumps(found["key-refused"])


@pytest.mark.parametrize("core, export, words", [
    ("Protocols = 4;", "Protocols = 3;", "Set Protocols to 4"),
    ("Protocols = 3;", "Protocols = 4;", "Set Protocols to 3"),
    ("", "Transports = UDP;", "Remove the key"),
])
def test_an_export_that_no_client_reaches(tmp_path, core, export, words):
    path = written(tmp_path, core=core, exports=({"export": export},))
    status, found = check(path, "--offline")
    assert status == 2 and words in found["no-access"]["way_out"]


@pytest.mark.parametrize("name, words", [
    ("nowhere/gateway.prom", "mkdir -p {}/nowhere"),
    ("gateway.txt", 'Set Metrics_File = "{}/gateway.txt.prom".'),
    ("", "Name a file in it."),
    ("gateway.prom", None),
])
def test_a_file_of_metrics(tmp_path, name, words):
    path = written(tmp_path, block=f'Metrics_File = "{tmp_path}/{name}";')
    status, found = check(path, "--offline")
    assert status == (1 if words else 0)
    if words:
        assert words.format(tmp_path) in found["no-metrics"].values()


def test_a_pipe(tmp_path):
    """It is read several times: the second time would last forever."""
    os.mkfifo(tmp_path / "pipe")
    status, found = check(tmp_path / "pipe", "--offline")
    assert status == 3 and "pipe" in found["file-unreadable"]["what"]


def test_parameters_that_ganesha_refuses(tmp_path):
    """Nothing is said of the others, which it has not read then."""
    status, found = check(written(tmp_path, core="NFS_Port = 99999;"),
                          "--offline")
    assert status == 2
    assert set(found) == {"key-refused", "startup-message"}


GOOD_CLIENTS = "CLIENT { Clients = 10.0.0.0/8, 192.168.7.1, fd00::/64, " \
    "@group, a.example.com, *.example.org; Access_Type = RW; }"


@pytest.mark.parametrize("taken, given, code", [
    ("Export_Id = 7; ", "", "key-refused"),
    ("Export_Id = 7; ", "Export_Id = ; ", None),
    ("Path = /; ", "", "key-refused"),
    ("Pseudo = /p7;", "", "key-refused"),
    ("Pseudo = /p7;", "Pseudo = p7;", "key-refused"),
    ("Access_Type = RW;", "CLIENT { Clients = 10.0.0.1; }", "no-access"),
    ("Access_Type = RW;", GOOD_CLIENTS, None),
])
def test_an_export_without(tmp_path, taken, given, code):
    if "Pseudo" in taken and not given and ganesha_5_9.IS_OLD:
        pytest.skip("5.9 serves it over NFSv3")
    path = written(tmp_path)
    text = path.read_text(encoding="utf-8")
    assert taken in text
    path.write_text(text.replace(taken, given), encoding="utf-8")
    found = check(path, "--offline")[1]
    assert code in found if code else not found


def test_a_grace_period_that_an_mds_outlasts(tmp_path):
    path = written(tmp_path)
    good = path.read_text(encoding="utf-8")
    for seconds, codes in (79, {"grace-short"}), (80, set()):
        path.write_text(good.replace("Grace_Period = 90", "Grace_Period = "
                                     f"{seconds}"), encoding="utf-8")
        status, found = check(path, "--offline")
        assert set(found) == codes and status == len(codes)
        if codes:
            assert "an MDS that fails over" in found["grace-short"]["what"]


@pytest.mark.parametrize("export, severity, code, words", [
    ({"export": "Skuash = None;"}, "warning", "key-unknown",
     "Squash was probably meant"),
    ({"export": "CLIENT { Clients = 10.0.0.1; Acess_Type = RO; }"},
     "warning", "key-unknown", "Access_Type was probably meant"),
    ({"export": "Cache_Bytes = 0;"}, "warning", "key-unknown",
     "It belongs into CEPH_ASYNC { }."),
    ({"export": "Stable_Write = data;"}, "warning", "key-unknown",
     "It belongs into CEPH_ASYNC { } or FSAL { } of an EXPORT { }."),
    ({"export": "Max_Read = 65536;"}, "warning", "key-unknown",
     "FSAL { } of an EXPORT { }, or was MaxRead meant?"),
    ({"fsal": "Stable_Wirte = data;"}, "error", "key-unknown",
     "Stable_Write was probably meant"),
    ({"fsal": "Cache_Bytes = 0;"}, "error", "key-unknown",
     "It belongs into CEPH_ASYNC { }."),
    ({"fsal": "Attr_Expiration_Time = 0;"}, "error", "key-unknown",
     "It belongs into EXPORT { }, outside of FSAL { }."),
    ({"fsal": "User_Id = other; Name = CEPH_ASYNCH; #"}, "error",
     "fsal-name", "CEPH_ASYNC was probably meant"),
    ({"fsal": "User_Id = other; Name = CEPHFS; #"}, "error",
     "fsal-name", "CEPHFS, which is not installed"),
    ({"fsal": "User_Id = other; Naam = CEPH_ASYNC; #"}, "error",
     "fsal-name", "export 8 has no Name"),
])
def test_what_was_meant(tmp_path, export, severity, code, words):
    """Ganesha would go on without it; another export is right."""
    path = written(tmp_path, **told({"exports": ({}, export)}))
    if code == "fsal-name":
        good, found, bad = path.read_text(encoding="utf-8").rpartition(
            "Name = CEPH_ASYNC;\n")
        assert found
        path.write_text(good + bad, encoding="utf-8")
    _, found = check(path, "--offline")
    assert found[code]["severity"] == severity
    assert words in found[code]["what"] + found[code]["way_out"]
    assert found[code]["place"]["line"] > 0


def test_a_good_file(tmp_path):
    status, found = check(written(tmp_path), "--offline")
    assert (status, found) == (0, {})


def test_what_ganesha_5_9_needs_to_be_told(tmp_path):
    """Of 9.x nothing is said."""
    path = written(tmp_path, nfsv4="Delegations = true;",
                   exports=({"export": "Delegations = RW;"},))
    path.write_text(path.read_text(encoding="utf-8").replace(LISTINGS, ""),
                    encoding="utf-8")
    done = subprocess.run(
        [PROGRAM, "--json", "--offline", "-f", path], text=True, timeout=60,
        stdin=subprocess.DEVNULL, capture_output=True, check=False)
    found = {one["code"]: (one["severity"], one["what"], one["way_out"])
             for one in json.loads(done.stdout)["findings"]}
    if not ganesha_5_9.IS_OLD:
        assert (done.returncode, found) == (0, {})
        return
    assert done.returncode == 1
    assert set(found) == {"kept-listings", "directory-delegations",
                          "no-delegations", "no-metrics"}
    assert "Metrics_File" in found["no-metrics"][2]
    assert found["kept-listings"][0] == "warning"
    assert "Dir_Chunk = (preset)" in found["kept-listings"][1]
    assert found["directory-delegations"][0] == "note"
    assert "EREMOTEIO" in found["directory-delegations"][1]
    assert found["no-delegations"][0] == "note"
    assert "Delegations = RW" in found["no-delegations"][1]


def test_signed_handles(tmp_path):
    """Then exports may share a user."""
    keys = tmp_path / "keys"
    keys.touch(mode=0o600)
    keys.write_text("5a" * 32)
    path = written(tmp_path, block=f'Sign_Handles = true; Handle_Keys = '
                                   f'"{keys}";',
                   exports=({}, {"path": "/other"}))
    assert check(path, "--offline") == (0, {})
    keys.chmod(0o644)
    status, found = check(path, "--offline")
    assert (status, set(found)) == (2, {"handle-keys"})
    assert "chmod 600" in found["handle-keys"]["what"]


def test_what_runs_is_not_what_is_written(cluster, second, tmp_path):
    """As after an upgrade that puts an image of Ceph back."""
    second(fsal="CEPH")
    running = CONF.read_text(encoding="utf-8")
    try:
        CONF.write_text(running.replace("Name = CEPH;", "Name = CEPH_ASYNC;")
                        .replace("CEPH {", "CEPH_ASYNC {"), encoding="utf-8")
        status, found = check(CONF, "--offline")
        assert (status, found["not-loaded"]["severity"]) == (2, "error")
        assert "FSAL_CEPH" in found["not-loaded"]["what"]
    finally:
        CONF.write_text(running, encoding="utf-8")
    cluster.stop_second()
    second()
    assert not {"not-loaded", "not-served"} & set(check(CONF, "--offline")[1])


def test_the_place_is_that_of_the_key(tmp_path):
    """Also in an included file."""
    part = tmp_path / "part.conf"
    part.write_text("# a line\nCEPH_ASYNC {\n\tUmask = 999;\n}\n",
                    encoding="utf-8")
    path = written(tmp_path, more=f"%include {part}")
    text = path.read_text(encoding="utf-8").replace(
        "CEPH_ASYNC { \nCache_Bytes = 0; }", "")
    path.write_text(text, encoding="utf-8")
    place = check(path, "--offline")[1]["key-refused"]["place"]
    assert (place["file"], place["line"], place["key"]) == \
        (str(part), 3, "Umask")


def test_several_gateways_are_told_of(tmp_path):
    status, found = check(written(tmp_path), "--offline", "--gateways", "2")
    assert (status, set(found)) == (2, {"recovery-local"})


def test_a_secret_in_a_file_for_all(tmp_path):
    path = written(tmp_path, exports=(
        {"fsal": f'User_Id = x; Secret_Access_Key = "{WORD}";'},))
    assert check(path, "--offline") == (0, {})
    path.chmod(0o644)
    status, found = check(path, "--offline")
    assert (status, set(found)) == (1, {"secret-readable"})


def test_no_file(tmp_path):
    status, found = check(tmp_path / "none", "--offline")
    assert (status, set(found)) == (3, {"file-unreadable"})


def test_the_table(tmp_path):
    """For people: severity, place, what and way out."""
    path = written(tmp_path, block="Umask = 999;")
    done = subprocess.run([PROGRAM, "--offline", "-f", path], text=True,
                          capture_output=True, timeout=60, check=False)
    assert f"ERROR     {path}:3 CEPH_ASYNC Umask" in done.stdout
    assert done.stdout.endswith("1 error, 0 warnings, "
                                f"{len(OF_GANESHA)} notes\n")
    assert (done.returncode, done.stderr) == (2, "")


def test_another_version_of_ganesha(tmp_path):
    """Its library under the name of the next version."""
    ours = next(folder / "nfs-ganesha-ceph-async/casync_check.so"
                for folder in (Path("/usr/local/libexec"),
                               Path("/usr/libexec"))
                if (folder / "nfs-ganesha-ceph-async").exists())
    other = tmp_path / "libganesha_nfsd.so.99.1"
    shutil.copy(installed.ganesha_library(), other)
    done = subprocess.run(
        [sys.executable, "-B", reader.CHILD, other, ours,
         "casync_check_read", written(tmp_path)], text=True, timeout=60,
        check=True, stdin=subprocess.DEVNULL, capture_output=True)
    refused = json.loads(done.stdout)["versions"]["refused"]
    assert refused.startswith("this is Ganesha 99.1: install "
                              "nfs-ganesha-ceph-async built for 99.1")


@pytest.mark.parametrize("name", sorted(
    str(path.relative_to(CONFIG)) for path in CONFIG.rglob("*.conf")
    if path.parent.name not in ("high-availability", "systemd")))
def test_samples_have_no_error(name):
    status, found = check(CONFIG / name, "--offline")
    assert status in (0, 1), found


@pytest.mark.parametrize("own", [False, True])
def test_compat(tmp_path, own):
    """The plugin under FSAL_CEPH's name, in a folder made for it."""
    ours = next(path for path in Path("/usr/lib").glob("*/ganesha")
                if (path / "libfsalceph_async.so").exists())
    folder = tmp_path / "plugins"
    folder.mkdir()
    for name in ("libfsalceph.so", "libfsalceph_async.so"):
        (folder / name).symlink_to(ours / "libfsalceph_async.so")
    path = written(
        tmp_path, core=f'Plugins_Dir = "{folder}";',
        exports=({},) if own else (),
        more="CEPH { Unheard_Of = 5; Umask = 999; Cache_Bytes = 0; "
             "Client_OC = true; } "
             "EXPORT { Export_Id = 3; Path = /c; Pseudo = /n; "
             "Access_Type = RO; Attr_Expiration_Time = 0; "
             "FSAL { Name = CEPH; User_Id = y; } }")
    _, found = check(path, "--offline")
    wanted = {"both-names"} if own else {"compat"}
    assert set(found) == wanted | {"key-unknown", "key-refused",
                                   "key-without-effect"}
    assert found["key-unknown"]["severity"] == "warning"


# --- the cluster

@pytest.fixture(scope="module")
def folders(cluster):
    """Two folders, made by CephFS' own client."""
    mount = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
    mount.mount()
    for path in (b"/checked", b"/other"):
        mount.mkdirs(path, 0o777)
    mount.close(mount.open(b"/checked-file", os.O_CREAT | os.O_WRONLY, 0o600))
    yield mount
    mount.unlink(b"/checked-file")
    mount.rmdir(b"/other")
    mount.rmdir(b"/checked")
    mount.shutdown()


def test_an_export_that_was_left_out(cluster, till_end, second, folders):
    """It cannot be mounted at Ganesha's start, later it could be; and all that
    is written is right then."""
    till_end(cluster.expects("path '/later'", *NO_EXPORT))
    pid = second(append=[
        'EXPORT { Export_Id = 30; Path = "/later"; Pseudo = "/later"; '
        "Access_Type = RW; FSAL { Name = CEPH_ASYNC; } }"], check=False).pid
    folders.mkdir(b"/later", 0o777)
    try:
        left_out = check(CONF)[1]["not-served"]
        assert left_out["severity"] == "error"
        assert f"(pid {pid}) does not serve export 30" in left_out["what"]
        assert f"kill -HUP {pid}" in left_out["way_out"]
        os.kill(pid, signal.SIGHUP)
        until(lambda: "not-served" not in check(CONF)[1], "the export")
    finally:
        cluster.stop_second()
        folders.rmdir(b"/later")


MON, MDS = ("mon", "allow r"), ("mds", "allow rw path=/checked")
OSD = ("osd", "allow rw tag cephfs data=cephfs")


@pytest.fixture
def user(folders, tmp_path):
    """Makes a user with these capabilities; its export."""
    names = []

    def make(*capabilities, key=None, path="/checked", fsal=""):
        name = f"check{len(names)}"
        names.append(name)
        words = [word for pair in capabilities for word in pair]
        keyring = tmp_path / f"{name}.keyring"
        keyring.write_text(ceph("auth", "get-or-create", f"client.{name}",
                                *words), encoding="utf-8")
        if key == "of another":
            key = ceph("auth", "get-key", "client.admin").strip()
        by_key = f'Secret_Access_Key = "{key}";' if key else ""
        return {"path": path, "fsal": f"User_Id = {name};\n"
                f'Ceph_Option = "keyring = {keyring}";\n{by_key}\n{fsal}'}
    yield make
    for name in names:
        ceph("auth", "rm", f"client.{name}")


def test_a_user_with_all_capabilities(user, folders, tmp_path):
    path = written(tmp_path, exports=(user(MON, MDS, OSD),))
    before = folders.stat(b"/checked")
    assert check(path) == (0, {})
    after = folders.stat(b"/checked")
    assert before == after, "something was written without --write-test"
    assert check(path, "--write-test") == (0, {})
    with folders.opendir(b"/checked") as entries:
        names = [folders.readdir(entries).d_name for _ in range(2)]
        assert folders.readdir(entries) is None, "a file is left behind"
    assert sorted(names) == [b".", b".."]


@pytest.mark.parametrize("capabilities, code, words", [
    ((MDS, OSD), "not-accepted", "lacks the capability mon"),
    ((("mon", "allow r fsname=other"), MDS, OSD), "no-file-system",
     "capability mon does not allow it"),
    ((MON, OSD), "mount-hangs", "did not let client.check0 mount"),
    ((MON, ("mds", "allow rw path=/other"), OSD), "capability-mds",
     "may not mount '/checked'"),
    ((MON, ("mds", "allow r"), OSD), "capability-mds", "may not write below"),
    ((MON, MDS), "capability-osd", "no answer about pool"),
    ((MON, MDS, ("osd", "allow r tag cephfs data=cephfs")), "capability-osd",
     "may not write to pool 'cephfs_data'"),
])
def test_one_capability_less(user, tmp_path, capabilities, code, words):
    """The message names the capability and the command that gives it."""
    path = written(tmp_path, exports=(user(*capabilities),))
    began = time.monotonic()
    status, found = check(path, "--timeout", "2")
    assert time.monotonic() - began < 20
    assert (status, set(found)) == (2, {code})
    shown = json.dumps(found[code])
    assert words in shown
    assert found[code]["command"] == (
        "ceph auth caps client.check0 mon 'allow r fsname=cephfs' mds "
        "'allow rw fsname=cephfs path=/checked' osd 'allow rw tag cephfs "
        "data=cephfs'")


def test_the_named_command_helps(user, tmp_path):
    """As it is printed, by the shell."""
    path = written(tmp_path, exports=(
        user(MON, ("mds", "allow r"), OSD, fsal="Object_Size = 65536;"),))
    _, found = check(path, "--timeout", "2")
    subprocess.run(["sh", "-c", found["capability-mds"]["command"]],
                   check=True, capture_output=True, timeout=30)
    assert check(path, "--write-test") == (0, {})


def test_layouts_need_p(user, tmp_path):
    path = written(tmp_path, exports=(
        user(MON, MDS, OSD, fsal="Object_Size = 65536;"),))
    status, found = check(path)
    assert (status, set(found)) == (2, {"capability-mds"})
    assert "may not set layouts (p)" in found["capability-mds"]["what"]


@pytest.mark.parametrize("change, code", [
    ({"path": "/nowhere"}, "no-path"),
    ({"path": "/checked-file"}, "no-path"),
    ({"path": "relative"}, "path-relative"),
    ({"fsal": "Filesystem = none;"}, "no-file-system"),
    ({"fsal": "Data_Pool = none;"}, "no-pool"),
    ({"fsal": "Data_Pool = cephfs_metadata;"}, "not-data-pool"),
    ({"key": "of another"}, "not-accepted"),
])
def test_an_export_that_cannot_be(user, tmp_path, change, code):
    every = (MON, ("mds", "allow rwp"), ("osd", "allow rw"))
    path = written(tmp_path, exports=(user(*every, **change),))
    status, found = check(path, "--timeout", "5")
    assert (status, set(found)) == (2, {code})


def test_no_key(folders, tmp_path):
    path = written(tmp_path, exports=(
        {"fsal": "User_Id = nobody; "
                 'Ceph_Option = "keyring = /nowhere";'},))
    status, found = check(path, "--timeout", "5")
    assert (status, set(found)) == (2, {"no-key"})
    assert "client.nobody in /nowhere" in found["no-key"]["what"]
    assert "prints to /nowhere" in found["no-key"]["way_out"]


def test_no_key_in_files_of_its_own(folders, tmp_path):
    """Ceph's preset: the first file is the user's, and may be written."""
    own = "/etc/ceph/ceph.client.nobody.keyring"
    path = written(tmp_path, exports=(
        {"fsal": "User_Id = nobody; Ceph_Option = "
                 f'"keyring = {own},/etc/ceph/keyring";'},))
    _, found = check(path, "--timeout", "5")
    assert f"client.nobody -o {own};" in found["no-key"]["way_out"]


def test_no_key_and_a_minimal_ceph_conf(folders, tmp_path):
    """The quick start's: without auth_client_required the monitors refuse the
    user as if it were unknown."""
    conf = tmp_path / "ceph.conf"
    conf.write_text(ceph("config", "generate-minimal-conf"),
                    encoding="utf-8")
    path = written(tmp_path, block=f'Ceph_Conf = "{conf}";',
                   exports=({"fsal": "User_Id = nobody;"},))
    status, found = check(path, "--timeout", "5")
    assert (status, set(found)) == (2, {"no-key"})
    assert "Correct User_Id" in found["no-key"]["way_out"]


def test_the_way_out_of_a_misspelt_path(user, tmp_path):
    """The command alone would take the folder from the right export."""
    path = written(tmp_path, exports=(
        user(MON, ("mds", "allow rw path=/other"), OSD),))
    _, found = check(path, "--timeout", "5")
    assert found["capability-mds"]["way_out"].startswith("Correct Path")


def test_no_ceph_conf(folders, tmp_path):
    path = written(tmp_path,
                   block='Ceph_Conf = "/nowhere";')
    status, found = check(path)
    assert (status, set(found)) == (2, {"no-ceph-conf"})


def test_a_write_that_fails(user, tmp_path):
    path = written(tmp_path, exports=(
        user(MON, MDS, ("osd", "allow r")),))
    status, found = check(path, "--write-test")
    assert (status, set(found)) == (2, {"capability-osd", "write-test"})


def test_a_lease_that_is_too_long(user, tmp_path):
    path = written(tmp_path, nfsv4="Delegations = true;",
                   exports=(user(MON, MDS, OSD),))
    assert check(path) == (0, {})
    ceph("fs", "set", "cephfs", "session_autoclose", 50)
    try:
        status, found = check(path)
    finally:
        ceph("fs", "set", "cephfs", "session_autoclose", 300)
    assert (status, set(found)) == (1, {"lease-long"})
    assert "Set Lease_Lifetime to 19 or less" in found["lease-long"]["way_out"]


def test_a_monitor_that_does_not_answer(tmp_path):
    """It takes the connection, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as dead:
        conf = tmp_path / "ceph.conf"
        conf.write_text("[global]\nmon_host = v2:127.0.0.1:"
                        f"{dead.getsockname()[1]}\n", encoding="utf-8")
        path = written(tmp_path,
                       block=f'Ceph_Conf = "{conf}";',
                       exports=({"fsal": "User_Id = admin;"}, {}, {}))
        began = time.monotonic()
        status, found = check(path, "--timeout", "2")
    assert time.monotonic() - began < 15
    assert status == 2
    assert "no-monitor" in found


@pytest.fixture
def recovery(cluster):
    """A pool for the grace database, without one."""
    ceph("osd", "pool", "create", "check_recovery", "8")
    connected = rados.Rados(conffile="/etc/ceph/ceph.conf", rados_id="admin")
    connected.connect(timeout=20)
    with connected.open_ioctx("check_recovery") as pool:
        pool.set_namespace("gateways")
        yield pool
    connected.shutdown()
    ceph("osd", "pool", "rm", "check_recovery", "check_recovery",
         "--yes-i-really-really-mean-it")


def test_the_recovery_database(recovery, user, tmp_path):
    """No pool, no database, not this node, this node; a user who may not."""
    export = user(MON, MDS, OSD)

    def codes(pool="check_recovery", more="", node="gw1"):
        path = written(
            tmp_path, nfsv4="RecoveryBackend = rados_cluster;",
            exports=(export,),
            more=f'RADOS_KV {{ nodeid = "{node}"; pool = "{pool}"; '
                 f'namespace = "gateways"; {more} }}')
        return set(check(path, "--timeout", "5")[1])

    assert codes(pool="none") == {"no-recovery-pool"}
    assert codes() == {"no-grace"}
    recovery.write_full("grace", b"")
    assert codes() == {"not-in-grace"}
    with rados.WriteOpCtx() as operation:
        recovery.set_omap(operation, ("gw1",), (b"N",))
        recovery.operate_write_op(operation, "grace")
    assert codes() == set()
    assert codes(more='userid = "nobody";') == {"recovery-user"}
    # As cephadm names a rank, by the tool of this Ganesha.
    assert codes(node="0") == {"not-in-grace"}
    grace_tool("--userid", "admin", "--pool", "check_recovery", "--ns",
               "gateways", "add", "0")
    assert codes(node="0") == set()
    # As 5.9's tool names it.
    with rados.WriteOpCtx() as operation:
        recovery.set_omap(operation, ("7",), (b"N",))
        recovery.operate_write_op(operation, "grace")
    assert codes(node="7") == \
        (set() if ganesha_5_9.IS_OLD else {"not-in-grace"})


# --- the archive

class Metrics(http.server.BaseHTTPRequestHandler):
    """Ganesha's, with a key in it that should not be there."""

    def do_GET(self):   # noqa: N802: its name
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"requests 5\nkey={SECRET}\n".encode())

    def log_message(self, *_):
        """Nothing on stderr."""


@contextlib.contextmanager
def metrics():
    with http.server.HTTPServer(("127.0.0.1", 0), Metrics) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def contents(path):
    """The files of an archive; they are in one folder."""
    with tarfile.open(path) as tar:
        files = {name.split("/", 1)[1]: tar.extractfile(name).read().decode()
                 for name in tar.getnames()}
        assert len({name.split("/")[0] for name in tar.getnames()}) == 1
    return files


@pytest.fixture
def in_rados(cluster):
    """Puts a text into an object, for %url."""
    def put(text):
        with connected.open_ioctx("cephfs_data") as pool:
            pool.write_full("check-exports", text.encode())
        url = "rados://cephfs_data/check-exports"
        return (f'RADOS_URLS {{ userid = "admin"; watch_url = "{url}"; }}\n'
                f"%url {url}")
    with rados.Rados(conffile="/etc/ceph/ceph.conf",
                     rados_id="admin") as connected:
        yield put
        with connected.open_ioctx("cephfs_data") as pool:
            pool.remove_object("check-exports")


def test_an_export_in_rados(in_rados, user, tmp_path):
    """As "ceph nfs" has them, with the key in the export."""
    export = user(MON, MDS, OSD)
    key = ceph("auth", "get-key", "client.check0").strip()

    def codes(given):
        text = EXPORT.format(number=9, path="/checked", pseudo="/p9",
                             export="",
                             fsal=f'User_Id = check0; Secret_Access_Key = '
                                  f'"{given}"; Umask = 5;')
        path = written(tmp_path, exports=(), more=in_rados(text))
        found = check(path, "--timeout", "5")[1]
        place = found["key-unknown"]["place"]
        assert (place["file"], place["line"]) == \
            ("rados://cephfs_data/check-exports", 4)
        if "not-accepted" in found:
            refused = found["not-accepted"]
            assert refused["place"]["key"] == "Secret_Access_Key"
            assert "client.check0 and Secret_Access_Key" in refused["what"]
        return set(found)

    assert export["path"] == "/checked"
    assert codes(key) == {"key-unknown"}
    assert codes(ceph("auth", "get-key", "client.admin").strip()) == {
        "key-unknown", "not-accepted"}
    assert not subprocess.run(
        ["rados", "-p", "cephfs_data", "listwatchers", "check-exports"],
        check=True, capture_output=True, timeout=30).stdout


def test_an_archive_without_secrets(lab, user, in_rados, tmp_path):
    """Secrets are in all that it is made of, and not in it."""
    export = user(MON, MDS, OSD)
    key = ceph("auth", "get-key", "client.check0").strip()
    export["fsal"] += (f'Secret_Access_Key =\n\t"{key}";\n'
                       f"# was: secret_access_key = {WORD}\n"
                       f'Ceph_Option = "key = {WORD}";')
    url = in_rados("EXPORT { Export_Id = 3; Path = /r; Pseudo = /r; FSAL { "
                   f'Name = CEPH_ASYNC; Secret_Access_Key = "{PLAIN}"; }} }}')
    part = tmp_path / "part.conf"
    part.write_text(f"# {SECRET} {PLAIN}\n"
                    f"# rados://someone:{WORD}@pool/x\n", encoding="utf-8")
    log = tmp_path / "ganesha.log"
    log.write_text(f"{SECRET}\nold\nkey: {WORD}\nuser {key} {PLAIN}\nlast\n",
                   encoding="utf-8")
    conf = tmp_path / "ceph.conf"
    conf.write_text(Path("/etc/ceph/ceph.conf").read_text(encoding="utf-8")
                    + f"\n[client.x]\nkey = {SECRET}\n", encoding="utf-8")
    archive = tmp_path / "report.tar.gz"
    with metrics() as port:
        path = written(
            tmp_path, core=f"Monitoring_Port = {port};",
            block=f'Ceph_Conf = "{conf}";',
            more=f"{url}\n%include {part}", exports=(export,))
        status, found = check(path, "--collect", archive, "--log", log,
                              "--log-lines", "4", "--timeout", "5")
    assert status == 2
    files = contents(archive)
    for name, text in {**files, "findings": json.dumps(found)}.items():
        for secret in (SECRET, WORD, PLAIN, key):
            assert secret not in text, name
    assert {"README", "findings.json", "configuration.json", "ceph.conf",
            "versions", "ganesha.log", "cluster.json"} <= set(files)
    assert all(name in files["README"] for name in files if name != "README")
    assert files["ganesha.log"].splitlines()[0] == "old"
    if not ganesha_5_9.IS_OLD:
        assert "requests 5" in files["metrics"]
    assert "rados://cephfs_data/check-exports" in files["configuration.json"]
    assert files["configuration/0-ganesha.conf"].count("(removed)") == 3
    assert any(name.endswith("/threads") and "ms_dispatch" in text
               for name, text in files.items())
    assert json.loads(files["cluster.json"])["status"]["result"]["health"]
    assert archive.stat().st_mode & 0o777 == 0o600


def test_an_archive_that_cannot_be_written(tmp_path):
    status, _ = check(written(tmp_path), "--offline", "--collect",
                      tmp_path / "none" / "report.tar.gz", no_archive=True)
    assert status == 3


def test_an_archive_without_a_configuration(tmp_path):
    """Of a host where nothing is right."""
    archive = tmp_path / "report.tar.gz"
    status, _ = check(tmp_path / "none", "--collect", archive)
    assert status == 3
    assert "file-unreadable" in contents(archive)["findings.txt"]
