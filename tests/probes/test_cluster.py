"""A cluster of Ray ends with the bytes of a plain run, whatever it loses on its way."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
import ray
from placed import hashes
from ray.cluster_utils import Cluster

from plumbline.builders.core.errors import UserError
from plumbline.probes.core import run_probe
from plumbline.probes.core.run_probe import Execution, probe
from plumbline.probes.models.load import pin
from plumbline.probes.politicians import associations

TOP = Path(__file__).parents[2]
TINY = Path("data/outputs/associations/tiny")
RAY = Execution("ray", 2)
# by default it takes Ray 15 s to tell that a node is dead, and its workers give way to all others
QUICK = {
    "RAY_health_check_initial_delay_ms": "500",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "4",
    "RAY_worker_niceness": "0",
    "PYTHONPATH": str(TOP),
}


@pytest.fixture
def whole(place, monkeypatch, change):
    """Return what a plain run in one process writes; leave the place as it was before."""
    monkeypatch.setattr(associations, "SHARD", 20)
    change(lambda tree: tree["models"]["tiny"].update(dtype="float32"))
    pin("tiny")
    bytes_of_one = hashes(probe("associations", "tiny"))
    TINY.rename("elsewhere")
    assert len(bytes_of_one) > 15
    return bytes_of_one


@pytest.fixture
def nodes(monkeypatch):
    """Two raylets on loopback, each with one CPU; the driver is at the first."""
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RAY_TMPDIR", folder)
    cluster = Cluster(shutdown_at_exit=False)
    options = {"num_cpus": 1, "object_store_memory": 100 << 20}
    try:
        cluster.add_node(**options, include_dashboard=False)
        cluster.add_node(**options)
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)
        yield cluster
    finally:
        cluster.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def actors():
    """Return the processes that are actors of ours."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    lines = (line.split(None, 1) for line in listed.stdout.splitlines())
    return [int(pid) for pid, args in lines if args.startswith("ray::_call")]


def after(monkeypatch, number, act):
    """Do something once a number of shards is written."""
    write, seen = run_probe.write_bytes, []

    def writing(path, body):
        write(path, body)
        seen.append(path)
        if len(seen) == number:
            act()

    monkeypatch.setattr(run_probe, "write_bytes", writing)
    return seen


@pytest.mark.slow
def test_ray_node_and_actor_killed(whole, nodes, monkeypatch):
    (node,) = nodes.worker_nodes

    def lose():
        assert len(ray.nodes()) == 2
        nodes.remove_node(node, allow_graceful=False)

    with monkeypatch.context() as patch:
        seen = after(patch, 3, lose)
        assert hashes(probe("associations", "tiny", RAY)) == whole
    assert len(seen) == len([name for name in whole if name.endswith(".parquet")])
    # and on the node that is left, its actor
    TINY.rename("without-a-node")
    after(monkeypatch, 3, lambda: os.kill(actors()[0], signal.SIGKILL))
    assert hashes(probe("associations", "tiny", RAY)) == whole


@pytest.mark.slow
def test_ray_on_this_machine(whole, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)
    assert hashes(probe("associations", "tiny", Execution("ray"))) == whole
    deadline = time.monotonic() + 20
    while actors() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not actors()
    TINY.rename("once")
    next(Path("tiny").glob("*.safetensors")).write_bytes(b"spoilt")
    with pytest.raises(UserError, match=r"model\.safetensors"):
        probe("associations", "tiny", Execution("ray"))
