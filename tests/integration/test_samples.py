# SPDX-License-Identifier: LGPL-3.0-or-later
"""Each file in config/ serves: ganesha.nfsd is started with it as it is, and
the Linux client writes and reads files on all its exports, over NFSv4.2, and
over NFSv3 where the sample serves that.

What a sample needs is made as its comments say: users by `ceph fs authorize`,
folders, a pool.  Changed are a second gateway's ports and node id, and the
place where a key has to be filled in; added is that Ganesha may run in a
container that has not the capability SYS_RESOURCE, and without a grace period
where no other gateway takes part in it.
"""
import re
import subprocess
import time
from pathlib import Path

import cephfs
import pytest
import yaml

from lab import LOGS, SECOND_PORT, Log
from lab_program import grace_tool

CONFIG = Path(__file__).parents[2] / "config"

# The exports, those of one folder together; which way they may be used.
EXPORTS = {
    "ceph_async.conf": ["/cephfs=RW"],
    "smallest.conf": ["/cephfs=RW"],
    "databases-and-vm-images.conf": ["/vms=RW"],
    "media-streaming.conf": ["/media-in=RW", "/media=RO"],
    "home-directories.conf": ["/home=RW"],
    "active-active.conf": ["/shared=RW"],
    "pair.conf": ["/shared=RW"],
    "ab-pair.conf": ["/a,/b=RW"],
    "cephadm/userconf.conf": ["/async=RW"],
}
ONLY_4 = ("databases-and-vm-images.conf", "cephadm/userconf.conf")
# It needs a KDC: test_kerberos.py runs it.
KERBEROS = "kerberos.conf"
PLACEHOLDER = "AQBPUT@YOUR@KEY@HERE=="


def ceph(*words):
    done = subprocess.run(words, text=True, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    return done.stdout.strip()


def commands(text):
    """What the comments tell the administrator to type."""
    return re.findall(r"ceph fs authorize \S+ client\.\S+ \S+ \w+", text)


def with_keys(text, block, keys):
    """KEYS more in a block of Ganesha's, which may be there once."""
    if f"{block} {{" not in text:
        text = f"{block} {{\n}}\n{text}"
    return text.replace(f"{block} {{", f"{block} {{\n{keys}", 1)


def to_start_here(text):
    """Without waiting, as long as NFSv3 is served, for Grace_Period; and not
    on port 875 (RQUOTA), which any client of the last minute may have used as
    its own reserved one."""
    text = with_keys(text, "NFS_CORE_PARAM",
                     "allow_set_io_flusher_fail = true;")
    if "Enable_RQUOTA" not in text:
        text = with_keys(text, "NFS_CORE_PARAM", "Enable_RQUOTA = false;")
    if "rados_cluster" in text:
        return text
    return with_keys(text, "NFSv4", "Graceless = true;")


def make_folders(paths):
    """As an administrator would, with CephFS' own client."""
    mount = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
    mount.mount()
    try:
        for path in paths:
            mount.mkdirs(path.encode(), 0o777)
            mount.chmod(path.encode(), 0o1777)
    finally:
        mount.shutdown()


@pytest.fixture
def prepared(cluster, tmp_path):
    """Does for a sample what its comments ask for; undoes it."""
    keyring = Path(ceph("ceph-conf", "--name", "client.admin",
                        "--show-config-value", "keyring"))
    before = keyring.read_bytes()
    users = []

    def prepare(name):
        text = (CONFIG / name).read_text(encoding="utf-8")
        make_folders(path for path in re.findall(r"^\tPath = (.+);", text,
                                                 re.M) if path != "/")
        for command in commands(text):
            user = command.split()[4]
            users.append(user)
            made = tmp_path / "keyring"
            made.write_text(ceph(*command.split()) + "\n")
            if PLACEHOLDER in text:
                text = text.replace(PLACEHOLDER,
                                    ceph("ceph", "auth", "get-key", user))
            else:
                ceph("ceph-authtool", keyring, "--import-keyring", made)
        path = tmp_path / Path(name).name
        path.write_text(to_start_here(text), encoding="utf-8")
        return path
    yield prepare
    cluster.ensure_default()
    keyring.write_bytes(before)
    for user in users:
        ceph("ceph", "auth", "rm", user)


def serve(lab, path, name="a", *options):
    """The whole pseudo tree, so that all exports are seen in one mount.

    The lab's own wait is by NFSv4.0, which some samples do not serve.
    """
    log = Log(LOGS / f"ganesha-{name}.log")
    lab.ganesha("restart", "--name", name, "--fresh", "--conf", path,
                "--pseudo", "/", "--no-wait", *options)
    end = time.monotonic() + 60
    while not log.matching("NFS SERVER INITIALIZED"):
        assert time.monotonic() < end, log.text()
        time.sleep(0.1)


def mounts_of_3(text):
    """PSEUDO:NAME of each export that NFSv3's clients may mount, by Path or
    by Pseudo."""
    if re.search(r"^\s*Protocols = 4;", text, re.M):
        return []
    by_pseudo = re.search(r"^\s*mount_path_pseudo = true;", text, re.M)
    return [f"{pseudo}:{pseudo if by_pseudo else path}"
            for path, pseudo in re.findall(
                r"^\tPath = (\S+);.*?^\tPseudo = (\S+);", text, re.M | re.S)]


def use(lab, exports, name="a", by_3=()):
    more = ["--nfs3", *by_3] if by_3 else []
    out = lab.script("sample_io.py", *exports, *more, name=name, seconds=100)
    assert "/mnt/nfs: all well" in out
    assert ("/mnt/nfs3: all well" in out) is bool(by_3)


def names():
    return [name for name in EXPORTS
            if name not in ("active-active.conf", "pair.conf")]


@pytest.mark.parametrize("name", names())
def test_the_sample_serves(lab, prepared, name):
    by_3 = mounts_of_3((CONFIG / name).read_text(encoding="utf-8"))
    assert bool(by_3) is (name not in ONLY_4)
    serve(lab, prepared(name))
    use(lab, EXPORTS[name], by_3=by_3)


def second_gateway(text):
    """The line that differs, and ports beside the first one's."""
    assert text.count('nodeid = "node1";') == 1
    return with_keys(
        text.replace('nodeid = "node1";', 'nodeid = "node2";'),
        "NFS_CORE_PARAM",
        f"NFS_Port = {SECOND_PORT}; MNT_Port = {SECOND_PORT + 1}; "
        f"Monitoring_Port = {SECOND_PORT + 4}; Dbus_Name_Prefix = b;")


@pytest.fixture
def recovery_pool(cluster):
    """As the head of a sample says."""
    pools = []

    def make(name):
        text = (CONFIG / name).read_text(encoding="utf-8")
        pool = re.search(r"ceph (osd pool create (\S+))", text)
        options, nodes = re.search(r"ganesha-rados-grace (.*) add (.+)",
                                   text).groups()
        ceph("ceph", *pool[1].split())
        pools.append(pool[2])
        for node in nodes.split():
            grace_tool(*options.split(), "add", node)
    with cluster.may_have_news():
        yield make
        cluster.ensure_default()
    for pool in pools:
        ceph("ceph", "osd", "pool", "rm", pool, pool,
             "--yes-i-really-really-mean-it")


def test_a_gateway_of_a_pair(lab, recovery_pool, prepared):
    """One of the hosts; test_failover.py has two of them."""
    recovery_pool("pair.conf")
    by_3 = mounts_of_3((CONFIG / "pair.conf").read_text(encoding="utf-8"))
    serve(lab, prepared("pair.conf"))
    use(lab, EXPORTS["pair.conf"], by_3=by_3)


def test_two_gateways(lab, recovery_pool, prepared, tmp_path):
    """Both serve; what is written by the one is read by the other."""
    recovery_pool("active-active.conf")
    path = prepared("active-active.conf")
    other = tmp_path / "second.conf"
    other.write_text(second_gateway(path.read_text(encoding="utf-8")),
                     encoding="utf-8")
    try:
        serve(lab, path)
        serve(lab, other, "b", "--port", SECOND_PORT)
        for name in "ab":
            use(lab, EXPORTS["active-active.conf"], name)
        for name in "ab":
            found = lab.client("sh", "-c", "ls /mnt/nfs/shared | wc -l",
                               name=name)
            assert int(found.strip().splitlines()[-1]) >= 2, found
    finally:
        lab.stop_second()


def test_all_samples_are_here():
    found = {str(path.relative_to(CONFIG))
             for path in CONFIG.rglob("*.conf")}
    # The first is not Ganesha's: test_failover.py.
    assert found - {"high-availability/keepalived.conf", KERBEROS,
                    "systemd/single-gateway.conf"} == set(EXPORTS)


@pytest.mark.parametrize("name", [n for n in (*EXPORTS, KERBEROS)
                                  if n != "ceph_async.conf"])
def test_each_setting_has_its_reason(name):
    """A comment right above it; ceph_async.conf is made from the table of
    keys, which sees to that itself."""
    lines = (CONFIG / name).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if re.match(r"\s*\w+ = ", line):
            assert lines[number - 1].lstrip().startswith("# "), \
                f"{name}:{number + 1}: {line}"


def test_systemd_takes_the_drop_in(tmp_path):
    """With the unit of Debian's package; a key that it does not know would be
    a line of output."""
    name = "nfs-ganesha.service"
    unit = (Path("/usr/lib/systemd/system") / name).read_text()
    (tmp_path / name).write_text(unit)
    drop_in = tmp_path / f"{name}.d"
    drop_in.mkdir()
    text = (CONFIG / "systemd/single-gateway.conf").read_text()
    for more, good in (("", True), ("Restrt=always\n", False)):
        (drop_in / "single-gateway.conf").write_text(text + more)
        done = subprocess.run(
            ["systemd-analyze", "verify", "--recursive-errors=no",
             str(tmp_path / name)], text=True, capture_output=True,
            timeout=60, check=False)
        ours = [line for line in (done.stdout + done.stderr).splitlines()
                if "single-gateway.conf" in line]
        assert (ours == []) is good, ours


def each_value(node, path=()):
    if isinstance(node, dict):
        for key, value in node.items():
            yield from each_value(value, (*path, key))
    else:
        yield path, node


def test_cephadm_specification():
    """Only its syntax and what it says: there is no cephadm here."""
    spec = yaml.safe_load((CONFIG / "cephadm/nfs.yaml").read_text())
    assert spec["service_type"] == "nfs"
    assert isinstance(spec["service_id"], str)
    assert isinstance(spec["placement"], dict)
    assert isinstance(spec["spec"]["port"], int)
    assert all("libfsalceph_async.so" in word
               for word in spec["extra_container_args"])


def test_rook_resource():
    """Only its syntax and what it says: there is no Kubernetes here."""
    resource = yaml.safe_load((CONFIG / "rook/cephnfs.yaml").read_text())
    assert resource["apiVersion"] == "ceph.rook.io/v1"
    assert resource["kind"] == "CephNFS"
    assert isinstance(resource["metadata"]["name"], str)
    server = resource["spec"]["server"]
    assert isinstance(server["active"], int) and server["image"]
    assert re.fullmatch("NIV_[A-Z_]+", server["logLevel"])


def test_cephadm_specification_of_an_image():
    """The service it names is the one that gets the image."""
    text = (CONFIG / "cephadm/nfs-image.yaml").read_text(encoding="utf-8")
    spec = yaml.safe_load(text)
    assert spec["service_type"] == "nfs"
    assert "extra_container_args" not in spec
    for name in re.findall(r"client\.nfs\.(\w+)", text):
        assert name == spec["service_id"]
    assert isinstance(spec["spec"]["port"], int)


@pytest.mark.parametrize("name", ["cephadm/nfs.yaml", "cephadm/nfs-image.yaml",
                                  "rook/cephnfs.yaml"])
def test_each_value_has_its_reason(name):
    """Of a specification: what is no name of its format has a comment."""
    text = (CONFIG / name).read_text(encoding="utf-8").splitlines()
    spec = yaml.safe_load("\n".join(text))
    for path, _ in each_value(spec):
        if path[-1] in ("service_type", "apiVersion", "kind"):
            continue
        number = next(i for i, line in enumerate(text)
                      if line.lstrip().startswith(f"{path[-1]}:"))
        assert text[number - 1].lstrip().startswith("# "), path
