"""The fast start changes no answer, and where it fails all is as if it had not been tried."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from models.tiny import answers, bert, save, wordpiece

from plumbline.probes.models.masked import Masked

WORDS = ["kind", "brave", "calm", "dull"]
PROMPTS = ["<mask> Ada", "Bo <mask>", "Ada is <mask> Bo"]
START = """
import json, sys
import torch
from plumbline.probes.core import imports
draw = torch.nn.Embedding.reset_parameters
"""
FILL = """
imports.lean()
assert any(isinstance(module, imports.Later) for module in sys.modules.values())
from plumbline.probes.models.masked import Masked
scorer = Masked(sys.argv[1], "tiny", "r1", dtype="float32")
fills = [f for block in scorer.fill(*json.loads(sys.argv[2]), 4) for f in block.each()]
print(json.dumps([[f.words, list(map(float, f.logprobs_nats))] for f in fills]))
weight = torch.nn.Parameter(torch.ones(2))
weight.sum().backward()
torch.optim.AdamW([weight], fused=True).step()
late = [name for name, module in sys.modules.items() if type(module) is imports.Later]
assert set(late) == set(imports.STAND_INS), late  # neither needed what is put off
"""
FAIL = """
whole = imports._without_optional
imports._without_optional = lambda: (whole(), 1 / 0)
imports.lean()
assert torch.nn.Embedding.reset_parameters is draw
assert "transformers" not in sys.modules
assert not any(isinstance(module, imports.Later) for module in sys.modules.values())
from transformers.utils import import_utils
assert import_utils.is_torch_available() and import_utils.is_scipy_available()
"""


def started(code, *given):
    """Run code in a process of its own, and return what it printed."""
    top = Path(__file__).parents[2]
    ended = subprocess.run(
        [sys.executable, "-c", START + code, *map(str, given)],
        cwd=top,
        env={**os.environ, "PYTHONPATH": str(top), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.slow
def test_a_fast_start_changes_no_bit_of_an_answer(tmp_path):
    tokenizer = wordpiece([f"{name} is {word}" for word in WORDS for name in ("Ada", "Bo")])
    folder = save(tmp_path, bert(tokenizer), tokenizer)
    found = started(FILL, folder, json.dumps([PROMPTS, WORDS]))
    # this process imports transformers as a whole
    fills = answers(Masked(folder, "tiny", "r1", dtype="float32").fill(PROMPTS, WORDS, 4))
    assert json.loads(found) == [
        [list(fill.words), [float(value) for value in fill.logprobs_nats]] for fill in fills
    ]


@pytest.mark.slow
def test_a_fast_start_that_fails_leaves_nothing_behind():
    started(FAIL)
