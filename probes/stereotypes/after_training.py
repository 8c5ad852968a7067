"""Probe ``after_training``: the probe ``completions`` after training on a news outlet.

Every model is trained on some or all articles of each corpus in the dataset ``outlets``, with
several seeds, and prompted again, as in Choenni, Shutova and van Rooij (2021), section 6.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import polars as pl
from pydantic import Field, model_validator

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import section
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.core.run_probe import Shard, Task
from plumbline.probes.prompts.groups import prompted, queries
from plumbline.probes.stereotypes import completions
from plumbline.probes.training.checkpoints import Rates

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from plumbline.probes.models.params import Model
    from plumbline.probes.models.scorer import Scorer

INPUTS = ("social_groups", "stereotypes", "outlets")
VERB = "predict"
PROMPT = "prompt"  # name of the column that contains the prompts
TRAINS = True  # the probe trains models, so a trial takes more than a few seconds
ALSO = ("probes.completions",)  # other sections of params on which outputs depend
WORK = Path("data/tuning")  # folder for unfinished training runs
KEY = "probes.after_training"

SCHEMA = Schema(
    columns=(
        Column("corpus", "string", "outlet or control corpus on which the model was trained"),
        Column("share", "float64", "share of its articles used for training", minimum=0, maximum=1),
        Column("tuning_seed", "int32", "seed of the training run and of its sample of articles"),
        Column("articles", "int32", "number of training articles", minimum=1),
        Column("steps", "int32", "number of training steps", minimum=1),
        *completions.COLUMNS,
    ),
    key=("corpus", "share", "tuning_seed", *completions.SCHEMA.key),
)
SCHEMAS = {"one a language": SCHEMA}


class Params(Rates):
    """Corpora and settings for training with AdamW; the templates are those of ``completions``."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the outputs")
    languages: list[str] = Field(min_length=1, description="configs of the dataset outlets")
    corpora: list[str] = Field(min_length=1, description="outlets and control corpus to train on")
    shares: list[Annotated[float, Field(gt=0, le=1)]] = Field(
        min_length=1, description="shares of the articles; each sample is part of the larger ones"
    )
    seeds: list[Annotated[int, Field(ge=0)]] = Field(min_length=1, description="training seeds")
    further_seeds: dict[str, list[Annotated[int, Field(ge=0)]]] = Field(
        {},
        description="additional training seeds at the smallest share, by corpus",
    )
    redrawn: bool = Field(
        False,
        description="whether articles are sampled with replacement, even at share 1; the paper "
        "uses each article once",
    )
    top_k: int = Field(200, ge=1, description="number of tokens retained per prompt")
    max_tokens: int | None = Field(
        None,
        ge=1,
        description="maximum number of tokens of a corpus at share 1, in steps of `batch` x "
        "`length` tokens, so that corpora of longer articles are not trained on for longer; null, "
        "as in the paper: all articles, in steps of `batch` texts",
    )
    epochs: int = Field(1, ge=1, description="number of passes over the articles")
    batch: int = Field(8, ge=1, description="number of texts per training step")
    length: int = Field(512, ge=8, description="maximum tokens per text; longer articles are split")

    @model_validator(mode="after")
    def _sane(self) -> Params:
        if unknown := sorted(self.further_seeds.keys() - set(self.corpora)):
            raise ValueError(f"further_seeds.{unknown[0]}: not of corpora")
        return self


def runs(params: Params) -> list[tuple[str, float, int]]:
    """Return the corpus, share and seed of each training run, in shard order."""
    trainings = [(c, s, n) for c in params.corpora for s in params.shares for n in params.seeds]
    least = min(params.shares)
    trainings += [(c, least, n) for c, seeds in params.further_seeds.items() for n in seeds]
    return list(dict.fromkeys(trainings))


def shards(params: Params, model: Model, folders: dict[str, Path]) -> list[Shard]:
    """Return one shard per training run; raise UserError for an unknown language or corpus."""
    result, trainings = [], runs(params)
    frames = section(ALSO[0], completions.Params).frames
    for language in model.among(params.languages):
        path = folders["outlets"] / f"{language}.parquet"
        if language not in frames or not path.is_file():
            raise UserError(
                f"{KEY}.languages: {language} must be in {ALSO[0]}.frames and outlets; add it to "
                "both, or remove it"
            )
        outlets = set(pl.read_parquet(path, columns=["outlet"])["outlet"].unique())
        if missing := sorted(set(params.corpora) - outlets):
            raise UserError(
                f"{KEY}.corpora: {', '.join(missing)} not in outlets/{language}; available: "
                f"{', '.join(sorted(outlets))}"
            )
        result += [
            Shard(language, f"{corpus}-{share:g}-{seed}", number, len(trainings))
            for number, (corpus, share, seed) in enumerate(trainings)
        ]
    return result


def amount(params: Params, model: Model, folders: dict[str, Path]) -> dict[str, int]:
    """Return the number of prompts per language in all training runs, excluding rewritten ones."""
    asking = section(ALSO[0], completions.Params)
    return {
        language: len(runs(params)) * len(queries(asking, folders, language))
        for language in model.among(params.languages)
    }


def answer(shard: Shard, task: Task, scorer: Scorer) -> Iterator[pa.Table]:
    """Train the model, yield the output tables of one shard, and delete the trained weights."""
    params: Params = task.params
    model, folders = task.model, task.folders
    from plumbline.probes.models.load import adapter, download
    from plumbline.probes.models.tokenizer import Tokens
    from plumbline.probes.training.batches import within
    from plumbline.probes.training.train import Tuning, finetune, recipe

    language, name = shard.config, scorer.name
    corpus, share, seed = runs(params)[shard.number]
    prompts = section(ALSO[0], completions.Params)
    tuning = Tuning(params.rate(name, KEY), params.epochs, params.batch, params.length, seed)
    path = folders["outlets"] / f"{language}.parquet"
    most = params.max_tokens
    articles = texts(path, corpus, 1.0 if most else share, seed, redrawn=params.redrawn)
    start, facts = download(name, model), scorer.facts()
    if most:
        articles = within(Tokens(start, name), articles, round(most * share))[0]
        tuning = tuning._replace(batch_tokens=max(2, params.batch) * params.length)
    where = WORK / f"{name}-{language}-{shard.part}-{recipe(articles, tuning, facts)[:12]}"
    kind: Literal["masked", "causal"] = "causal" if model.kind == "causal" else "masked"
    trained = finetune(start, name, kind, articles, tuning, where, pickles=model.pickles)
    options: dict[str, Any] = {"dtype": model.dtype, "context": model.context}
    yield from completions.run(
        prompted(prompts, folders, language),
        prompts.frames[language],
        adapter(model.kind)(trained.folder, name, str(facts["revision"]), **options),
        params.top_k,
        language,
        causal=kind == "causal",
        schema=SCHEMA,
        corpus=corpus,
        share=share,
        tuning_seed=seed,
        articles=len(articles),
        steps=len(trained.losses),
    )
    shutil.rmtree(where)  # deleted last, so that a run that was interrupted does not train again


def texts(path: Path, corpus: str, share: float, seed: int, *, redrawn: bool = False) -> list[str]:
    """Sample a corpus's articles, nested by share; raise UserError if the sample is empty.

    ``redrawn``: whether to sample with replacement, since a replication would use other articles.
    """
    frame = pl.read_parquet(path).filter(outlet=corpus)
    rows = frame.sort("article").select("article", "text").rows()
    number = round(share * len(rows))
    if redrawn:
        rows = [rows[_hashed(f"{seed} draw {draw}") % len(rows)] for draw in range(number)]
    rows.sort(key=lambda row: _hashed(f"{seed} {row[0]}"))
    articles = [text for _, text in rows[:number]]
    if not articles:
        raise UserError(f"{path}: a share of {share:g} of {corpus} is empty; take a larger share")
    return articles


def _hashed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest())
