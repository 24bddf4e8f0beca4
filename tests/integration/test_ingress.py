# SPDX-License-Identifier: LGPL-3.0-or-later
"""`ceph nfs` behind a proxy, as cephadm's ingress has one: haproxy and Ganesha
have the configurations of cephadm's templates.  Whose address counts, and one
failure of ci/failover.sh --ingress.
"""
import argparse
import concurrent.futures
import contextlib
import itertools
import json
import os
import random
import resource
import socket
import struct
import threading
import time

import pytest

from failover import measure
from hosts import ADDRESS, PORT, ROUTER
from ingress import CLUSTER, Ingress
from lab import LOGS, SECOND_PORT
from lab_fixtures import without_cluster
from lab_program import ceph, lab, until
from nfs import nfs4, rpc

LISTED = "/listed"
SERVED_S = 15
NAMES = itertools.count(time.time_ns())
ACCESS = 13
REFUSED = (nfs4.NOENT, ACCESS)
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
LOCAL, PROXY, OVER_TCP = 0x20, 0x21, 0x11
STORM_S = 20
# Other tests and builds run beside this one.
PATIENCE = 3


@pytest.fixture(scope="module")
def proxied(cluster):
    with without_cluster(cluster):
        pair = Ingress()
        try:
            ceph("nfs", "export", "create", "cephfs", "--cluster-id", CLUSTER,
                 "--pseudo-path", LISTED, "--fsname", "cephfs", "--path=/")
            yield pair
        finally:
            pair.end()


def at(host, call):
    """What CALL() gives at HOST: its sockets are of that network."""
    def there():
        with open(f"/proc/{host.keeper.pid}/ns/net", "rb") as network:
            os.setns(network.fileno(), os.CLONE_NEWNET)
        return call()
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(there).result(60)


def header(source):
    """A PROXY header: the client is SOURCE."""
    addresses = socket.inet_aton(source) + socket.inet_aton(ADDRESS) + \
        struct.pack(">HH", 700, PORT)
    return SIGNATURE + struct.pack(
        ">BBH", PROXY, OVER_TCP, len(addresses)) + addresses


def status(server, greeting=b""):
    """0 if the export LISTED can be looked up."""
    viewer = nfs4.Viewer(PORT, f"viewer-{next(NAMES)}", host=server,
                         greeting=greeting)
    try:
        return viewer.status(LISTED)
    finally:
        viewer.leave()


def allow(*addresses):
    """Only ADDRESSES, by `ceph nfs export apply`."""
    info = json.loads(ceph("nfs", "export", "info", CLUSTER, LISTED))
    path = LOGS / "ingress-export.in"
    path.write_text(json.dumps({**info, "access_type": "NONE", "clients": [
        {"addresses": list(addresses), "access_type": "RW",
         "squash": "none"}]}))
    ceph("nfs", "export", "apply", CLUSTER, "-i", path)


def until_served(server, call=lambda ask: ask()):
    until(lambda: call(lambda: status(server)) == 0, "it is listed", SERVED_S)


# The direct way to the gateway, and who may go it.  Host 2 is one of
# HAProxy_Hosts, the machine of the tests is not.

def test_the_proxy_tells_who_the_client_is(proxied):
    allow(ROUTER)
    until_served(ADDRESS)
    other = proxied.hosts[1]
    assert at(other, lambda: status(ADDRESS)) in REFUSED
    allow(other.address)
    until_served(ADDRESS, lambda ask: at(other, ask))
    assert status(ADDRESS) in REFUSED
    allow(proxied.proxy.address, ADDRESS)
    until(lambda: at(other, lambda: status(ADDRESS)) in REFUSED,
          "the other one is not listed any more", SERVED_S)
    assert status(ADDRESS) in REFUSED


def test_a_client_at_the_proxy_s_host(proxied):
    """The proxy names it as any other client."""
    allow(ADDRESS, proxied.proxy.address)
    until_served(ADDRESS, lambda ask: at(proxied.proxy, ask))
    allow(ROUTER)
    until_served(ADDRESS)
    assert at(proxied.proxy, lambda: status(ADDRESS)) in REFUSED


def test_linux_writes_and_reads_through_the_proxy(proxied):
    allow("10.9.0.0/16")
    until(lambda: status(ADDRESS) in REFUSED, "only those are", SERVED_S)
    script = """cd /mnt/nfs/listed
dd if=/dev/urandom of=file bs=1M count=16 conv=fsync status=none
md5sum < file > sum; echo 3 > /proc/sys/vm/drop_caches
md5sum < file | diff - sum && grep -c ' nfs4 ' /proc/mounts"""
    done = lab("client", "--name", proxied.hosts[0].ganesha, "--server",
               ADDRESS, "--vers", "4.1", "--mem", "256M", "--timeout", 60,
               "--", "sh", "-e", "-c", script)
    assert int(done.stdout) >= 1


def test_without_a_header_the_connection_counts(proxied):
    """From a host of HAProxy_Hosts, and from another one."""
    direct, other = proxied.hosts[0].address, proxied.hosts[1]
    allow(ROUTER)
    until_served(direct)
    assert at(other, lambda: status(direct)) in REFUSED
    allow(other.address)
    until_served(direct, lambda ask: at(other, ask))
    assert status(direct) in REFUSED


def test_a_header_counts_from_haproxy_hosts_alone(proxied):
    direct, other = proxied.hosts[0].address, proxied.hosts[1]
    listed = "203.0.113.7"
    allow(listed)
    until(lambda: at(other, lambda: status(direct, header(listed))) == 0,
          "a listed client, says one of HAProxy_Hosts", SERVED_S)
    assert at(other, lambda: status(
        direct, header("203.0.113.8"))) in REFUSED
    # Not a single call of another host is answered.
    log = proxied.hosts[0].log()
    with contextlib.closing(rpc.Connection(
            PORT, host=direct, timeout=10, greeting=header(listed))) as one, \
            pytest.raises(rpc.Rejected):
        one.call(0, b"", version=4)
    assert log.matching("HAProxy connection from .*rejected")
    assert at(other, lambda: status(direct, header(listed))) == 0


def test_without_proxy_protocol_the_proxy_is_the_client(proxied):
    """cephadm's mode haproxy-standard, which is its default."""
    proxied.put_proxy("--no-proxy-protocol")
    try:
        allow(proxied.proxy.address)
        until_served(ADDRESS)
        assert at(proxied.hosts[1], lambda: status(ADDRESS)) == 0
        allow(ROUTER)
        until(lambda: status(ADDRESS) in REFUSED, "it is not told", SERVED_S)
    finally:
        proxied.put_proxy()


@pytest.mark.evidence
@pytest.mark.parametrize("fsal", ["CEPH", "CEPH_ASYNC"])
def test_a_health_check_with_a_header_ends_ganesha(cluster, second, record,
                                                   fsal):
    """libntirpc of Ganesha 5.9 and 9.14 crashes when a connection ends right
    after a PROXY header of the kind LOCAL.  haproxy's health checks do that
    every 2 s.  The day this fails, `lab ingress --plain-checks` can go."""
    pid = second(fsal).pid
    resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
    checks = itertools.count()
    end = time.monotonic() + STORM_S

    def check():
        while time.monotonic() < end:
            try:
                with socket.create_connection(
                        ("127.0.0.1", SECOND_PORT), 2) as one:
                    one.sendall(SIGNATURE + struct.pack(">BBH", LOCAL, 0, 0))
                    then = time.perf_counter() + random.random() * 3e-4
                    while time.perf_counter() < then:
                        pass
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                   struct.pack("ii", 1, 0))
            except OSError:
                return
            next(checks)

    threads = [threading.Thread(target=check) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: not cluster.stat()["ganesha"]["b"]["pid"],
          f"{fsal} ends after {next(checks)} checks", 5)
    record(f"{fsal}: Ganesha ended after {next(checks)} checks")


@pytest.mark.nightly    # ci/job.sh nightly runs the job itself
def test_clients_go_on_at_the_other_host(proxied, tmp_path, record, capsys):
    """Nothing is lost, no lock is held twice."""
    wrong = measure(argparse.Namespace(
        rounds=1, vers=["4.2"], only="killed", once=True, json=None,
        patience=PATIENCE), proxied, tmp_path)
    for line in capsys.readouterr().out.splitlines():
        if line.split(" ", 1)[-1].startswith("round") or "thief" in line:
            record(line.split(" ", 1)[-1])
    assert not wrong
