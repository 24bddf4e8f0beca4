# SPDX-License-Identifier: LGPL-3.0-or-later
"""The samples of config/high-availability, and one round of ci/failover.sh on
a cluster of its own.
"""
import re
import subprocess
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[2] / "config" / "high-availability"
# Other tests and builds run beside this one.
PATIENCE = 3


@pytest.mark.nightly    # ci/job.sh nightly runs the job itself
def test_clients_go_on_at_the_other_host(nothing_up, record):
    """Nothing is lost, no lock is held twice; there and back again."""
    said = nothing_up.job("failover/failover.py", "--only", "stopped",
                          "--patience", str(PATIENCE), "--vers", "4.1",
                          "4.2", "--", "1", limit_s=300)
    for line in said.splitlines():
        if line.split(" ", 1)[-1].startswith("round") or "thief" in line:
            record(line.split(" ", 1)[-1])


HOST = "ip link add eth0 type veth; ip addr add 192.0.2.11/24 dev eth0; " \
    'ip link set eth0 up; exec keepalived --config-test --vrrp -f "$0"'


def check_configuration(path, text):
    """What keepalived of such a host says of it."""
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return subprocess.run(
        ["unshare", "--net", "sh", "-c", HOST, path], text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=30, check=False)


def test_keepalived_takes_the_sample(tmp_path):
    path = tmp_path / "keepalived.conf"
    text = (SAMPLES / "keepalived.conf").read_text(encoding="utf-8")
    text = text.replace("/etc/keepalived/", f"{SAMPLES}/")
    text = text.replace("/usr/bin/systemctl", "/bin/true")
    done = check_configuration(path, text)
    assert (done.returncode, done.stdout) == (0, "")
    done = check_configuration(path, text.replace("advert_int", "advert_ink"))
    assert "advert_ink" in done.stdout


@pytest.mark.parametrize("script, words", [
    ("check-gateway.sh", ["192.0.2.100", "192.0.2.1"]),
    ("end-gateway.sh", ["192.0.2.100"]),
    ("take-over.sh", ["pool", "namespace", "192.0.2.12"]),
    ("leave.sh", ["pool", "namespace", "192.0.2.11"])])
def test_a_script_names_what_is_missing(script, words):
    """The command at the end has no default: nothing runs without it."""
    for count in range(len(words) + 1):
        done = subprocess.run([SAMPLES / script, *words[:count]], text=True,
                              stdin=subprocess.DEVNULL, timeout=30,
                              capture_output=True, check=False)
        assert done.returncode == 2, done
        assert re.search(r": ?[A-Z]+$", done.stderr.strip()), done.stderr


# As Ceph prints watchers, of a cluster with IPv4 and IPv6.
WATCHERS = """\
watcher=192.0.2.1:0/11 client.4101 cookie=1
watcher=192.0.2.12:0/12 client.4102 cookie=1
watcher=[2001:db8::1]:0/61 client.4103 cookie=1
watcher=[2001:db8::12]:0/62 client.4104 cookie=1
"""


@pytest.mark.parametrize("script", ["take-over.sh", "leave.sh"])
@pytest.mark.parametrize("host, fenced", [
    ("192.0.2.1", ["192.0.2.1:0/11"]),
    ("192.0.2.12", ["192.0.2.12:0/12"]),
    ("2001:db8::1", ["[2001:db8::1]:0/61"]),
    ("[2001:DB8::12]", ["[2001:db8::12]:0/62"]),
    ("192.0.2.99", [])])
def test_who_is_fenced(tmp_path, script, host, fenced):
    """Exactly the watchers of that host; it is said if there are others only.
    `rados` and `ceph` are stand-ins; failover.py --ipv6 has the real ones."""
    done = tmp_path / "done"
    (tmp_path / "watchers").write_text(WATCHERS)
    (tmp_path / "rados").write_text(
        '#!/bin/sh\ncase "$*" in *listwatchers*) '
        f"cat {tmp_path}/watchers;; esac\n")
    (tmp_path / "ceph").write_text(f'#!/bin/sh\necho "$*" >> {done}\n')
    for name in "rados", "ceph":
        (tmp_path / name).chmod(0o755)
    ended = subprocess.run(
        [SAMPLES / script, "pool", "namespace", host, "true"], text=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin",
             "TAKE_OVER_STAMP": str(tmp_path / "stamp")},
        stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)
    calls = done.read_text().splitlines() if done.exists() else []
    assert calls == [f"osd blocklist add {address} 300"
                     for address in fenced], ended
    assert bool(ended.stderr) == (not fenced), ended.stderr
