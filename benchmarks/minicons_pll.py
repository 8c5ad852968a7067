"""Measure the cost of pseudo-log-likelihoods in minicons, one sentence at a time.

    python benchmarks/minicons_pll.py --model FOLDER --texts FILE --out FILE.json

The script runs in its own environment (see ``minicons.txt``), since minicons does not support the
version of Transformers in the checkout. It scores every line of the texts separately, in rounds,
and writes the processor and wall-clock seconds of each round, and the scores of the last round
(sums over tokens, in nats). Loading the model and warm-up rounds are not counted.
"""

from __future__ import annotations

import argparse
import json
import time
from importlib.metadata import version
from pathlib import Path

import torch
from minicons.scorer import MaskedLMScorer

METHODS = ("original", "within_word_l2r")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True, help="folder of the model and its tokenizer")
    parser.add_argument("--texts", type=Path, required=True, help="one sentence a line")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--method", choices=METHODS, default="original")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--warmup", type=int, default=1, help="rounds before those that count")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    texts = options.texts.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    scorer = MaskedLMScorer(options.model, "cpu")

    rounds, scores = [], []
    for number in range(options.warmup + options.rounds):
        cpu, wall = time.process_time(), time.perf_counter()
        scores = [score(scorer, text, options.method) for text in texts]
        spent = {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall}
        if number >= options.warmup:
            rounds.append(spent)

    answer = {
        "versions": {name: version(name) for name in ("minicons", "torch", "transformers")},
        "method": options.method,
        "threads": options.threads,
        "sentences": len(texts),
        "rounds": rounds,
    }
    print(json.dumps(answer, indent=2))
    options.out.write_text(json.dumps({**answer, "scores": scores}, indent=2) + "\n")


def score(scorer: MaskedLMScorer, text: str, method: str) -> float:
    """Return the sum over tokens, while the default of minicons is their mean."""
    [total] = scorer.sequence_score(text, lambda x: x.sum(0).item(), PLL_metric=method)
    return total


if __name__ == "__main__":
    main()
