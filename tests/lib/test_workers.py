import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.workers import each

STARTED = """
import os, tempfile, time
from plumbline.builders.core.workers import pool

def work(folder):
    with tempfile.TemporaryDirectory(dir=folder):
        print(os.getpid(), flush=True)
        time.sleep(60)

if __name__ == "__main__":
    import sys
    with pool(2) as workers:
        list(workers.map(work, [sys.argv[1]] * 2))
"""


def alive(pid):
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.slow
def test_workers_end_with_a_process_that_is_killed(tmp_path):
    program = tmp_path / "started.py"
    program.write_text(STARTED)
    work = tmp_path / "work"
    work.mkdir()
    with subprocess.Popen([sys.executable, program, work], stdout=subprocess.PIPE) as parent:
        pids = [int(parent.stdout.readline()) for _ in range(2)]
        assert len({*pids, parent.pid}) == 3
        os.kill(parent.pid, signal.SIGKILL)
        end = time.monotonic() + 30
        while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < end:
            time.sleep(0.05)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
    assert not left


def test_each_call_is_told_with_its_place_and_has_the_variables_of_its_process():
    names = ["PLUMBLINE_TOLD", "PLUMBLINE_NOT_TOLD"]
    found = dict(each(os.getenv, [(name,) for name in names], 2, {names[0]: "so"}))
    assert found == {0: "so", 1: None}
    assert names[0] not in os.environ


def test_a_process_that_is_killed_is_one_sentence():
    with pytest.raises(UserError):
        list(each(os._exit, [(9,), (9,)], 1))
