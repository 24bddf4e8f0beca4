# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a stable overwrite costs the metadata server: nothing."""
import json

# Mounting, opening and closing cost some twenty events a run, so there must be
# enough writes for them not to count: four times over the file.
WRITES = 16384
LAYOUT = ("dd", "if=/dev/urandom", "of=/mnt/nfs/overwritten", "bs=1M",
          "count=16", "conv=fsync", "status=none")


def events_per_write(lab, tmp_path, name):
    """MDS journal events of stable 4 KiB overwrites, for each of them."""
    report = tmp_path / f"fio-{name}.json"
    before = lab.journal_events()
    lab.client(
        "fio", "--name=overwrite", "--filename=/mnt/nfs/overwritten",
        "--rw=randwrite", "--bs=4k", "--size=16m",
        f"--io_size={WRITES * 4}k",
        "--ioengine=libaio", "--iodepth=16", "--direct=1", "--sync=1",
        "--output-format=json", f"--output={report}", name=name)
    events = lab.journal_events() - before
    text = report.read_text()
    job = json.loads(text[text.index("{"):])["jobs"][0]
    assert job["error"] == 0
    assert job["write"]["total_ios"] == WRITES
    return events / job["write"]["total_ios"], job["write"]["iops"]


def test_stable_overwrites_journal_nothing(lab, second, record, tmp_path):
    second(fsal="CEPH")
    lab.client(*LAYOUT)
    mine, my_iops = events_per_write(lab, tmp_path, "a")
    other, its_iops = events_per_write(lab, tmp_path, "b")
    record(f"MDS journal events per stable 4 KiB overwrite: CEPH_ASYNC "
           f"{mine:.4f} ({my_iops:.0f} IOPS), CEPH {other:.4f} "
           f"({its_iops:.0f} IOPS)")
    assert mine <= 0.01
    assert other >= 0.8, "the comparison shows nothing: was it measured?"
