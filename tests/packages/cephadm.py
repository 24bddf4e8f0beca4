# SPDX-License-Identifier: LGPL-3.0-or-later
"""What cephadm does for one NFS service, where there is none."""
import json

from lab_program import ceph, lab, until
from machine import PACKAGES, command, plugins

PACKAGE = "nfs-ganesha-ceph-async"


class Cephadm:
    """After a command of `ceph nfs` or `ceph orch`: it takes the image that is
    configured for the service, and starts the gateway by its own template.

    There are no images here.  Where ours is configured, the packages are
    installed that it would be made of.  The manager asks an orchestrator, too:
    Ceph's test_orchestrator, who is told of the service.
    """

    COMMANDS = ("ceph nfs cluster create", "ceph nfs cluster config set",
                "ceph orch apply", "ceph orch redeploy")

    def __init__(self, cluster, image, folder):
        self.cluster, self.image, self.folder = cluster, image, folder
        for module in ("nfs", "test_orchestrator"):
            ceph("mgr", "module", "enable", module)
        self._answer()

    @staticmethod
    def _answer():
        def answers():
            ceph("orch", "set", "backend", "test_orchestrator", check=False)
            return "Available: Yes" in ceph("orch", "status", check=False)
        until(answers, "the orchestrator", 30)

    def _know_the_service(self):
        file = self.folder / "services.json"
        file.write_text(json.dumps({"services": [{
            "service_type": "nfs", "service_id": self.cluster,
            "service_name": f"nfs.{self.cluster}", "placement": {"count": 1},
            "spec": {"port": 2049}, "status": {"size": 1, "running": 1}}]}))
        ceph("test_orchestrator", "load_data", "-i", file)

    def ran(self, script):
        """A command of SCRIPT may be one that it has to do something for."""
        if not any(words in script for words in self.COMMANDS):
            return
        image = ceph("config", "get", f"client.nfs.{self.cluster}",
                     "container_image").strip()
        if (image == self.image) != self._installed():
            self._change_image()
        lab("nfs-cluster", self.cluster, "--port", 2049, "--installed")
        self._answer()
        self._know_the_service()

    @staticmethod
    def _installed():
        return (plugins() / "libfsalceph.so.distrib").exists()

    def _change_image(self):
        names = PACKAGE, f"{PACKAGE}-compat"
        if self._installed():
            command("apt-get", "purge", "-q", "-y", *names)
            return
        out = PACKAGES / "deb/this/out"
        command("apt-get", "install", "-q", "-y", "--no-install-recommends",
                *(next(out.glob(f"{name}_*.deb")) for name in names))

    def end(self):
        lab("ganesha", "stop", "--name", self.cluster, check=False)
        ceph("orch", "set", "backend", "")
