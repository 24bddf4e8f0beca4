# SPDX-License-Identifier: LGPL-3.0-or-later
"""A KDC of MIT Kerberos for a test, with users who exist on both sides.

The kernel client has the container's files: accounts, keytabs and krb5.conf
are the same for both.  Ganesha's host is "lab" to all of them.
"""
import os
import pwd
import signal
import socket
import subprocess
import time
from pathlib import Path

REALM = "LAB.TEST"
FOLDER = Path("/var/lib/casync-krb5")
KRB5_CONF = Path("/etc/krb5.conf")
HOSTS = Path("/etc/hosts")
SERVER_KEYTAB = FOLDER / "server.keytab"
CLIENT_KEYTAB = FOLDER / "client.keytab"
IDMAP_CONF = FOLDER / "idmapd.conf"
USERS = {"alice": 47110, "bob": 47120}
PASSWORD = "for a test alone"
PORT = 88

CONF = f"""[libdefaults]
 default_realm = {REALM}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
[realms]
 {REALM} = {{
  kdc = lab:{PORT}
 }}
[domain_realm]
 lab = {REALM}
"""
KDC_CONF = f"""[kdcdefaults]
 kdc_ports = {PORT}
 kdc_tcp_ports = {PORT}
[realms]
 {REALM} = {{
  database_name = {FOLDER}/principal
  key_stash_file = {FOLDER}/stash
  supported_enctypes = aes256-cts-hmac-sha1-96:normal
 }}
"""
IDMAP = f"""[General]
Domain = localdomain
Local-Realms = {REALM}
[Mapping]
Nobody-User = nobody
Nobody-Group = nogroup
[Translation]
Method = nsswitch
"""


class Kdc:
    """Running from its making until end(), which leaves nothing behind."""

    def __init__(self):
        FOLDER.mkdir(mode=0o700, exist_ok=True)
        self.before = {path: path.read_bytes() if path.exists() else None
                       for path in (KRB5_CONF, HOSTS)}
        KRB5_CONF.write_text(CONF)
        HOSTS.write_bytes(self.before[HOSTS] + b"127.0.0.1 lab\n")
        (FOLDER / "kdc.conf").write_text(KDC_CONF)
        IDMAP_CONF.write_text(IDMAP)
        self.env = {**os.environ,
                    "KRB5_KDC_PROFILE": str(FOLDER / "kdc.conf")}
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", PASSWORD)
        for name, uid in USERS.items():
            self._account(name, uid)
            self._admin(f'addprinc -pw "{PASSWORD}" {name}')
        self._admin("addprinc -randkey nfs/lab")
        self._admin("addprinc -randkey host/client")
        self._admin(f"ktadd -k {SERVER_KEYTAB} nfs/lab")
        self._admin(f"ktadd -k {CLIENT_KEYTAB} host/client")
        self.process = subprocess.Popen(
            ["krb5kdc", "-n", "-r", REALM], env=self.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self._wait()

    def _run(self, *command):
        subprocess.run(command, env=self.env, check=True, timeout=60,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT)

    def _admin(self, query):
        self._run("kadmin.local", "-r", REALM, "-q", query)

    @staticmethod
    def _account(name, uid):
        try:
            pwd.getpwnam(name)
        except KeyError:
            subprocess.run(["useradd", "--uid", str(uid), "--no-create-home",
                            "--user-group", name], check=True, timeout=30)

    def _wait(self):
        end = time.monotonic() + 20
        while True:
            assert self.process.poll() is None, "the KDC ended"
            try:
                socket.create_connection(("127.0.0.1", PORT), 1).close()
                return
            except OSError:
                assert time.monotonic() < end, "no answer from the KDC"
                time.sleep(0.1)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)
        for path, content in self.before.items():
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content)
        for name in USERS:
            subprocess.run(["userdel", name], check=False, timeout=30,
                           stderr=subprocess.DEVNULL)
        for path in sorted(FOLDER.iterdir()):
            path.unlink()
        FOLDER.rmdir()


def ganesha_blocks():
    """What its configuration needs beside SecType of the exports."""
    return (f'NFS_KRB5 {{ PrincipalName = "nfs@lab"; KeytabPath = '
            f'"{SERVER_KEYTAB}"; Active_krb5 = true; }}')
