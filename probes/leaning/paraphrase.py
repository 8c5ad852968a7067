"""Other wordings of statements, written by a model: a file to read, and then to ask with.

A command, not a stage: what a model wrote is to be looked at before anybody is asked it.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import section
from plumbline.builders.core.parquet import require_validated
from plumbline.builders.core.snapshot import write_bytes
from plumbline.probes.leaning import stances as statements
from plumbline.probes.models.scorer import Generates, Sampling
from plumbline.probes.prompts.leaning import FIELDS, STATEMENT, wordings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from plumbline.probes.models.scorer import Scorer


def write(name: str, prompt: str, seeds: Sequence[int], tokens: int, into: Path) -> Path:
    """Let a model word every statement of ``probes.leaning`` anew, once a seed, into a csv file.

    Parameters
    ----------
    prompt
        What the model is given, with ``{statement}``.
    tokens
        Of a wording at most. One that is not finished by then, is empty, or is the statement
        itself is left out.

    Raises
    ------
    Problem
        If the model cannot write, the prompt has no place for the statement, the file is there
        already, or no wording is left.
    """
    from plumbline.probes.models.load import load

    if prompt.count(STATEMENT) != 1:
        raise Problem(f"--prompt {prompt!r}: must have {STATEMENT} exactly once")
    if not seeds or tokens < 1:
        raise Problem("--seeds and --tokens: at least 1")
    if into.exists():
        raise Problem(f"{into}: is there already; name another file, or take it away")
    params = section("probes.leaning", statements.Params)
    scorer = load(name)
    if not isinstance(scorer, Generates):
        raise Problem(f"models.{name}: does not write; name a causal, seq2seq or remote model")
    body = told(scorer, params, prompt, seeds, tokens)
    into.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(into, body.encode())
    return into


def told(
    scorer: Scorer, params: statements.Params, prompt: str, seeds: Sequence[int], tokens: int
) -> str:
    """Return the file: a variant is named by the model, its revision and the seed."""
    assert isinstance(scorer, Generates)
    plain = params.model_copy(update={"paraphrases": None})
    said = [w for w in wordings(plain, require_validated("statements")) if w.form == "plain"]
    asked = [(w, seed) for w in said for seed in seeds]
    texts = scorer.generate(
        [prompt.replace(STATEMENT, w.text) for w, _ in asked],
        [seed for _, seed in asked],
        Sampling(tokens),
    )
    facts = scorer.facts()
    own = f"{facts['model']}@{str(facts['revision'])[:8]}"
    sink = io.StringIO()
    rows = csv.writer(sink, lineterminator="\n")
    rows.writerow(FIELDS)
    number = 0
    for (w, seed), text in zip(asked, texts, strict=True):
        wording = " ".join(text.text.split())
        if text.finished and wording and wording != w.text:
            rows.writerow((w.questionnaire, w.id, f"{own}-{seed}", wording))
            number += 1
    if not number:
        raise Problem(
            f"models.{scorer.name}: finished no wording that differs from its statement; try "
            "another prompt, or more tokens"
        )
    return sink.getvalue()
