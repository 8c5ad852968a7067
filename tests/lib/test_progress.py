"""Bars at a terminal, nothing into a file."""

import os
import pty
import subprocess
import sys
import termios

from samples import TOP

STEPS = """
import time
from plumbline.builders.core import progress
progress.PATIENCE = 0.2  # as after two seconds
{body}
"""
COUNTED = STEPS.format(
    body="""
for _ in progress.Bar(range(20), desc="treebanks", unit="file"):
    time.sleep(0.03)
"""
)


ENVIRONMENT = os.environ | {"PYTHONPATH": str(TOP)}


def seen(script):
    """Return what a person at a terminal sees."""
    here, there = pty.openpty()
    termios.tcsetwinsize(there, (24, 90))
    with subprocess.Popen([sys.executable, "-c", script], env=ENVIRONMENT, stderr=there) as running:
        os.close(there)
        parts = []
        try:
            while part := os.read(here, 4096):
                parts.append(part)
        except OSError:  # how Linux tells the end of a terminal
            pass
    os.close(here)
    assert running.returncode == 0
    return b"".join(parts).decode()


def test_at_a_terminal_there_is_a_bar_with_rate_and_time_left():
    screen = seen(COUNTED)
    assert "treebanks:" in screen
    assert "20/20" in screen
    assert "file/s" in screen
    states = [state for state in screen.split("\r") if "treebanks" in state]
    assert "0/20" not in states[0]  # it came only after a while
