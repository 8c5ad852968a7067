"""Continued pretraining on partisan corpora, with checkpoints.

Feng et al. (2023), section 3.2, continue the pretraining of language models on left-wing, center
and right-wing corpora from before and after 2017, and measure the political leaning of each model.
Settings that they do not report follow Gururangan et al. (2020).

The number of training processes is configured in accelerate.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import polars as pl
from pydantic import Field, model_validator

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import Bar, UserError
from plumbline.builders.core.params import section
from plumbline.builders.core.snapshot import digest, write_bytes
from plumbline.probes.models.load import download, load
from plumbline.probes.models.params import model, pointer
from plumbline.probes.models.tokenizer import Tokens
from plumbline.probes.training import distributed
from plumbline.probes.training.batches import within
from plumbline.probes.training.checkpoints import FOLDER, LIST, OTHER, Checkpoint, Recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from plumbline.probes.training.train import Loss, Tuning

    Spread = Callable[[Callable[..., object], list[tuple[object, ...]]], Iterable[object]]

KEY = "training.pretrain"
TRAINED = ("masked", "causal")  # kinds of models that can be trained
CODES = {"before": 0, "from": 1}  # codes in the column `period` of the dataset corpora
ARTICLES = 0  # code of articles in its column `kind`
PLANTED = "corpora.parquet"  # file with the texts of each corpus, in a control model's folder
LOSSES = "losses.csv"
HEADER = (
    *("checkpoint", "corpus", "period", "share", "seed"),
    *("epoch", "step", "loss", "learning_rate"),
)
SHORT = 0.01  # maximum share of a token budget that may be missing
WORK = Path("data/tuning/pretrain")  # files of unfinished training runs
Number = Annotated[int, Field(ge=1)]
Period = Literal["all", "before", "from"]
ByPeriod = Annotated[dict[Period, Number], Field(min_length=3)]
ByDomain = Annotated[dict[Literal["news", "social"], ByPeriod], Field(min_length=2)]


class Params(Recipe):
    """Models, texts and settings of continued pretraining."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the training runs")
    corpora: dict[str, list[str]] = Field(
        description=f"corpora of each model, or of `{OTHER}`; with [], nothing is trained"
    )
    periods: list[Period] = Field(
        ["all"],
        min_length=1,
        description="texts before 2017-01-20, from that day on, or all (including undated texts)",
    )
    shares: list[Annotated[float, Field(gt=0, le=1)]] = Field(
        [1.0], min_length=1, description="shares of the texts; the samples of all shares are nested"
    )
    seeds: list[Annotated[int, Field(ge=0)]] = Field(
        min_length=1, description="seeds of training runs and text samples; use at least three"
    )
    max_texts: Number | Literal["even", "apart"] | None = Field(
        None,
        description="maximum number of texts per corpus and period; even: size of the model's "
        "smallest corpus in any period; apart: that size divided by the number of seeds, so "
        "that no text is in two training runs; null: all",
    )
    max_tokens: Number | ByDomain | None = Field(
        None,
        description="number of training tokens, for all corpora or by domain and period; corpora "
        "with fewer tokens raise an error; null: all tokens of the texts",
    )
    epochs: int = Field(ge=1, description="number of passes over the texts")
    save: Literal["last", "each"] = Field(
        "last", description="save a checkpoint after the last epoch only, or after each epoch"
    )
    batch: int = Field(256, ge=1, description="texts per step, over all processes")
    batch_tokens: int = Field(
        0, ge=0, description="tokens per step, at least twice `length`; 0: `batch` applies"
    )
    micro_batch: int = Field(
        16,
        ge=1,
        description="texts of `length` tokens in one forward pass of a process; more texts if they "
        "are shorter, up to the same number of tokens",
    )
    length: int = Field(512, ge=8, description="maximum tokens in a text; longer texts are split")
    weight_decay: float = Field(0.01, ge=0, description="weight decay, applied to matrices only")
    mlm_probability: float = Field(
        0.15, gt=0, lt=1, description="share of tokens that masked models predict"
    )

    @model_validator(mode="after")
    def _once(self) -> Params:
        lists: dict[str, list[Any]] = {f"corpora.{m}": names for m, names in self.corpora.items()}
        lists |= {"periods": [*self.periods], "shares": self.shares, "seeds": self.seeds}
        for name, values in lists.items():
            if len(set(values)) < len(values):
                raise ValueError(f"{name}: contains duplicates; remove them")
        if 0 < self.batch_tokens < 2 * self.length:
            raise ValueError(f"batch_tokens: needs {2 * self.length}, two texts of `length`")
        return self

    def corpora_of(self, name: str) -> list[str]:
        """Return the training corpora of a model; raise UserError if it has no entry."""
        corpora = self.corpora.get(name, self.corpora.get(OTHER))
        if corpora is None:
            raise UserError(
                f"{KEY}.corpora: no entry for {name} or {OTHER}; add one, or [] for no training"
            )
        return corpora

    def tokens(self, corpus: Any, period: Any) -> int:
        """Return the number of training tokens of a corpus in a period; 0 if it is not limited."""
        caps = self.max_tokens or 0
        return caps if isinstance(caps, int) else caps[corpus.partition("-")[0]][period]

    def tuning(self, name: str, seed: int) -> Tuning:
        """Return the training settings; raise UserError if the model has no learning rate."""
        from plumbline.probes.training.train import Tuning

        settings = {"learning_rate": self.rate(name, KEY), "seed": seed}
        settings |= {"at_once": self.micro_batch, "masked": self.mlm_probability}
        return Tuning(**self.model_dump(include=set(Tuning._fields)) | settings)


class Run(NamedTuple):
    """One training run."""

    corpus: str
    period: str
    share: float
    seed: int

    def name(self, epoch: int) -> str:
        """Return the name of the checkpoint after an epoch."""
        return f"{self.corpus}-{self.period}-{self.share:g}-{self.seed}-{epoch}"


def pretrain(name: str, part: tuple[int, int] = (1, 1), spread: Spread | None = None) -> Path:
    """Write checkpoints, their list and losses to ``data/pretrained/NAME``; return the path.

    After an interruption, finished training runs are reused. Processes of `accelerate launch` train
    together, and the first one writes the files. Raises UserError if params or inputs are invalid,
    or if the model cannot be trained.

    ``part``: (i, n) trains only every n-th run, starting with the i-th; a call without ``part``
    then collects the results.
    ``spread``: function that calls another function on a cluster, with each of several arguments.
    """
    params, entry = section(KEY, Params), model(name)
    final, work = FOLDER / name, WORK / name
    if not params.corpora_of(name):
        if distributed.first():
            _write(final, [], [])
        return final
    if entry.kind not in TRAINED:
        raise UserError(
            f"{KEY}.corpora: {name} is of kind {entry.kind}, which cannot be trained; give it a "
            f"separate entry, `{name}: []`"
        )
    distributed.accelerator()  # before models are loaded, since it sets the device of this process
    chosen = _choices(params, name)
    facts = load(name).facts()  # this also checks the hashes of the files
    runs = sorted(chosen)
    if spread:
        for _ in spread(_train, [(name, run, facts, params, chosen[run]) for run in runs]):
            pass
    states: list[tuple[Path, Checkpoint]] = []
    lines: list[tuple[object, ...]] = []
    quiet = None if distributed.first() else True
    selected = runs[part[0] - 1 :: part[1]]
    with Bar(desc=f"pretrain {name}", total=len(selected), unit="training", disable=quiet) as bar:
        for run in selected:
            saved, losses = _train(name, run, facts, params, chosen[run])
            states += saved
            lines += _lines(saved[-1][1], losses)
            bar.update()
    if part[1] > 1:
        return work
    if distributed.first():
        _write(final, states, lines)
        shutil.rmtree(work)  # this is last, so that an interrupted run can be resumed
    distributed.wait()
    return final


def _choices(params: Params, name: str) -> dict[Run, list[str]]:
    """Return the texts of every training run."""
    folder, planted = parquet.require_validated("corpora"), pointer(name).parent / PLANTED
    pairs = product(params.corpora_of(name), params.periods)
    pools = {pair: pool(folder, *pair, planted) for pair in pairs}
    most, least = params.max_texts, min(map(len, pools.values()))
    if isinstance(most, str):
        most = least if most == "even" else least // len(params.seeds)
    texts = {}
    for pair, share, (index, seed) in product(pools, params.shares, enumerate(params.seeds)):
        run = Run(*pair, share, seed)
        texts[run] = drawn(pools[pair], share, index / len(params.seeds), most)
        if not texts[run]:
            raise UserError(
                f"{KEY}: no text in {share:g} of {run.corpus} ({run.period}); use a larger share, "
                "or other periods"
            )
    return texts


def _budgeted(params: Params, run: Run, texts: list[str], tokens: Tokens) -> list[str]:
    """Return the first texts up to ``max_tokens``; raise UserError if there are too few tokens."""
    most = round(params.tokens(run.corpus, run.period) * run.share)
    selected, total = within(tokens, texts, most)
    if len(selected) == len(texts) and total < most * (1 - SHORT):
        raise UserError(
            f"{KEY}.max_tokens: {run.corpus} ({run.period}) has {total:,} tokens, not {most:,}; "
            "lower the limit, or provide more texts"
        )
    return selected


def pool(folder: Path, corpus: str, period: str, planted: Path) -> dict[str, str]:
    """Return the texts of a corpus in a period, by id, in random order.

    Texts are ordered by hash. Articles are grouped by outlet, since leaning is a property of
    outlets; posts are not grouped. A world (control model) uses artificial texts, which are in
    every period, since real texts would erase its known bias. Other texts without a date are only
    in the period `all`. Raises UserError if the corpus is missing.
    """
    path = folder / f"{corpus}.parquet"
    if not path.is_file():
        raise UserError(
            f"{KEY}.corpora: {corpus} not in corpora; available: "
            f"{', '.join(parquet.configs(folder))}"
        )
    if planted.is_file():
        frame = pl.read_parquet(planted).filter(pl.col("corpus") == corpus).with_row_index("id")
        frame = frame.with_columns(id=pl.format("planted/{}/{}", "corpus", "id"), kind=ARTICLES)
    else:
        frame = pl.read_parquet(path, columns=["id", "text", "period", "outlet", "kind"])
        frame = frame.filter(pl.col("period") == CODES.get(period, pl.col("period")))
    outlet = pl.when(kind=ARTICLES).then("outlet").otherwise("id")
    rows = frame.select(outlet, "id", "text").rows()
    return {key: text for _, key, text in sorted(rows, key=lambda row: (*map(_hash, row[:2]), row))}


def drawn(texts: dict[str, str], share: float, start: float, most: int | None = None) -> list[str]:
    """Return a contiguous part of the texts in cyclic order.

    Training runs with evenly spaced starts share no text if there are enough texts. With a smaller
    share, the result is a subset.

    ``start``: start of the part as a share of all texts.
    ``most``: maximum number of texts; None for all.

    Examples
    --------
    >>> five = {key: key for key in "abcde"}
    >>> [drawn(five, 1, start, 3) for start in (0, 0.6)]
    [['a', 'b', 'c'], ['d', 'e', 'a']]
    """
    order = list(texts)
    first = round(start * len(order))
    chosen = [*order[first:], *order[:first]][:most]
    return [texts[key] for key in chosen[: round(share * len(chosen))]]


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _train(
    name: str, run: Run, facts: dict[str, str | int], params: Params, texts: list[str]
) -> tuple[list[tuple[Path, Checkpoint]], list[Loss]]:
    """Train a model once, or reuse the result of an interrupted run.

    Returns the folder of each checkpoint and its facts (without file hashes), and the losses.
    """
    from plumbline.probes.training.train import epoch, finetune, recipe

    entry, tuning, every_epoch = model(name), params.tuning(name, run.seed), params.save == "each"
    kind: Literal["masked", "causal"] = "causal" if entry.kind == "causal" else "masked"
    where, options = download(name, entry), {"pickles": entry.pickles, "every_epoch": every_epoch}
    if params.tokens(run.corpus, run.period):
        texts = _budgeted(params, run, texts, Tokens(where, name))
    made = recipe(texts, tuning, facts)
    epochs = tuning.epochs
    into = WORK / name / f"{run.name(epochs)}-{params.save}-{made[:12]}"
    trained = finetune(where, name, kind, texts, tuning, into, **options)
    states = []
    for number in range(1 if every_epoch else epochs, epochs + 1):
        steps, last = len(trained.losses) * number // epochs, number == epochs
        fields = (run.name(number), *run, number, len(texts), steps, last)
        folder = trained.folder if last else epoch(into, number)
        states.append((folder, Checkpoint(*fields, {}, made)))
    return states, trained.losses


def _write(
    final: Path,
    states: list[tuple[Path, Checkpoint]],
    lines: list[tuple[object, ...]],
) -> None:
    """Write the checkpoints, their list and the losses to a folder atomically."""
    partial = parquet.fresh(final)
    listed = []
    for path, checkpoint in states:
        into = partial / checkpoint.name
        shutil.copytree(path, into)
        files = {p.name: digest(p) for p in sorted(into.iterdir())}
        listed.append(checkpoint._replace(files=files)._asdict())
    text = json.dumps(listed, indent=1, sort_keys=True) + "\n"
    write_bytes(partial / LIST, text.encode())
    table = pl.DataFrame(lines, schema=HEADER, orient="row")
    write_bytes(partial / LOSSES, table.write_csv().encode())
    parquet.finish(final)


def _lines(end: Checkpoint, losses: list[Loss]) -> list[tuple[object, ...]]:
    """Return the losses of a training run, one row per step."""
    run = (end.name, end.corpus, end.period, f"{end.share:g}", end.seed)
    epoch_steps = end.steps // end.epoch
    return [
        (*run, -(-step // epoch_steps), step, f"{loss:.6f}", f"{rate:.6g}")
        for step, (loss, rate) in enumerate(losses, 1)
    ]
