"""Classifiers made of masked models."""

import pytest
import torch
from models.tiny import bert, save, wordpiece

from plumbline.probes.models.classifier import Classifier
from plumbline.probes.training import train as tune
from plumbline.probes.training.rows import FILES
from plumbline.probes.training.train import Tuning

GOOD = ["what a fine day", "a fine fine meal", "we had a fine time", "fine people all"]
BAD = ["what a foul day", "a foul foul meal", "we had a foul time", "foul people all"]
TEXTS, LABELS = GOOD + BAD, [1] * 4 + [0] * 4
TUNING = Tuning(5e-3, 6, 2, 16, 1)


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Use one thread: models as small as these lose more by waiting than they gain."""
    monkeypatch.setattr(tune, "cores", lambda: 1)


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    tokenizer = wordpiece(TEXTS)
    return save(tmp_path_factory.mktemp("start"), bert(tokenizer), tokenizer)


def learnt(start, into, tuning=TUNING):
    return tune.finetune_classifier(start, "m", TEXTS, LABELS, ["bad", "good"], tuning, into)


def test_finetune_classifier_learns(start, tmp_path):
    done = learnt(start, tmp_path, TUNING._replace(epochs=30))
    assert done.steps == 4 * 30
    model = Classifier(done.folder, "m", "r", dtype="float32")
    assert model.labels == ("bad", "good")
    found = [each.probabilities[1] for each in model.classify(TEXTS)]
    assert min(found[:4]) > 0.9
    assert max(found[4:]) < 0.1


def test_finetune_classifier_resumes(start, tmp_path, monkeypatch):
    monkeypatch.setattr(tune, "EVERY", 5)
    whole = learnt(start, tmp_path / "whole")
    plain, steps = torch.nn.functional.cross_entropy, []

    def stops(*given, **named):
        steps.append(1)
        if len(steps) == 13:
            raise KeyboardInterrupt
        return plain(*given, **named)

    monkeypatch.setattr(torch.nn.functional, "cross_entropy", stops)
    with pytest.raises(KeyboardInterrupt):
        learnt(start, tmp_path / "stopped")
    left = {p.name for p in (tmp_path / "stopped").iterdir()}
    assert left == {tune.CHECKPOINT, *FILES}
    again = learnt(start, tmp_path / "stopped")
    assert len(steps) == 13 + 24 - 10  # from the checkpoint of step 10 on
    files = [(each.folder / "model.safetensors").read_bytes() for each in (whole, again)]
    assert files[0] == files[1]
