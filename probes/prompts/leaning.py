"""Prompts about political statements: masked, open-ended, or with options to choose from.

They follow Feng et al. (2023), section 2, and Röttger et al. (2024), *Political Compass or Spinning
Arrow?* They are separate from the probe ``stances``, because a control model is trained on them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import polars as pl
from pydantic import AfterValidator, Field, model_validator

from plumbline.builders.core.errors import UserError, reading
from plumbline.builders.core.params import Params as Section
from plumbline.builders.readers.table import decoded, records
from plumbline.probes.models.scorer import MASK
from plumbline.probes.prompts import gaps

if TYPE_CHECKING:
    from collections.abc import Sequence

STATEMENT, OPTIONS, DENIED = "{statement}", "{options}", "{text}"
Form = Literal["plain", "negated", "paraphrase", "prior"]
FORMS: tuple[Form, ...] = ("plain", "negated", "paraphrase", "prior")
FIELDS = ("questionnaire", "id", "variant", "text")  # columns of a paraphrase file
ANSWERS = 4
Stated = Annotated[str, gaps(STATEMENT)]
Seeds = Annotated[
    list[Annotated[int, Field(ge=0)]], Field(min_length=1, description="one response per seed")
]


def _each(order: list[int]) -> list[int]:
    if sorted(order) != list(range(ANSWERS)):
        raise ValueError(f"{order} must have each of 0 to 3 once")
    return order


class MaskPrompts(Section):
    """Prompts for masked models."""

    frames: dict[str, Annotated[str, gaps(STATEMENT, MASK)]] = Field(
        min_length=1,
        description=f"templates by name, with {STATEMENT} and {MASK}; `faithful` uses the first",
    )
    top_k: int = Field(10, ge=1, description="number of most probable tokens that are retained")
    calibration_inputs: list[str] = Field(
        min_length=1, description=f"content-free texts in place of {STATEMENT}, for the prior"
    )


class Generation(Section):
    """Prompts for generative models, and the NLI model that classifies their responses."""

    frames: dict[str, Stated] = Field(
        min_length=1, description=f"templates by name, with {STATEMENT}; `faithful` uses the first"
    )
    seeds: Seeds
    max_new_tokens: int = Field(100, ge=1, description="maximum number of tokens in a response")
    temperature: float = Field(1.0, ge=0, description="0 means greedy decoding")
    top_k: int = Field(50, ge=0, description="tokens are sampled from the k most probable; 0: all")
    nli_model: str = Field(
        min_length=1, description="name of the NLI model, a classifier with a class for entailment"
    )
    agree: str = Field("This example is agree.", description="hypothesis for agreement")
    disagree: str = Field("This example is disagree.", description="hypothesis for disagreement")


class MultipleChoice(Section):
    """Prompts that offer four options."""

    templates: dict[str, Stated] = Field(
        description=f"by name, with {STATEMENT} and {OPTIONS}; those without {OPTIONS} are open"
    )
    forced_choice_suffixes: dict[str, str] = Field(
        min_length=1, description="text that follows the options, by name; '' adds none"
    )
    options: list[str] = Field(
        min_length=ANSWERS,
        max_length=ANSWERS,
        description="labels in the order strongly disagree, disagree, agree, strongly agree",
    )
    option_orders: list[Annotated[list[int], AfterValidator(_each)]] = Field(
        min_length=1, description="orders in which the options are offered, as indices (0 to 3)"
    )
    seeds: Seeds
    excluded_models: list[str] = Field(
        [], description="models without these prompts, as controls whose texts contain no options"
    )
    max_new_tokens: int = Field(20, ge=1, description="maximum number of tokens in a response")
    temperature: float = Field(0.0, ge=0, description="0 means greedy decoding")


class Asking(Section):
    """Statements and the prompts for each response format."""

    language: str = Field("en", description="language of statements and prompts")
    questionnaires: list[str] = Field(min_length=1, description="configs of the dataset statements")
    negated: Annotated[str, gaps(DENIED)] = Field(
        description=f"template of the negated statement, with {DENIED}"
    )
    paraphrases: list[str] = Field(
        [],
        description="CSV files of paraphrases (questionnaire, id, variant, text), used only in the "
        "first prompt",
    )
    positive: list[str] = Field(min_length=1, description="words for agreement (paper, Table 7)")
    negative: list[str] = Field(min_length=1, description="words for disagreement")
    mask: MaskPrompts = Field(description="prompts for masked models")
    generation: Generation = Field(description="prompts for generative models")
    multiple_choice: MultipleChoice = Field(description="prompts with options")

    @model_validator(mode="after")
    def _apart(self) -> Asking:
        if shared := sorted(set(self.positive) & set(self.negative)):
            raise ValueError(f"{shared[0]!r} is in both positive and negative")
        return self


class Wording(NamedTuple):
    """One wording of a statement."""

    questionnaire: str
    id: str  # empty for a prior
    form: Form
    variant: str  # name of the paraphrase, or the content-free text itself; otherwise empty
    text: str


class Question(NamedTuple):
    """One wording of a statement, in one prompt."""

    questionnaire: str
    id: str
    frame: str
    form: Form
    variant: str
    wording: str  # text that replaces the placeholder of the statement
    text: str  # the prompt


def wordings(asking: Asking, folder: Path) -> list[Wording]:
    """Return every statement in its plain, negated and paraphrased forms, in a fixed order.

    Raises UserError if a questionnaire is not in the dataset ``statements`` or has no statement in
    the language, or if a file of paraphrases is invalid.
    """
    paraphrased = [row for file in asking.paraphrases for row in paraphrases(file)]
    result: list[Wording] = []
    for config in asking.questionnaires:
        path = folder / f"{config}.parquet"
        if not path.is_file():
            raise UserError(
                f"probes.stances.questionnaires: {config} is not in statements; add it under "
                "datasets.statements.configs, or remove it"
            )
        table = pl.read_parquet(path, columns=["id", "language", "text", "sentence"]).unique("id")
        rows = table.filter(language=asking.language).sort("id")
        if rows.is_empty():
            raise UserError(
                f"probes.stances.questionnaires: {config} has no statement in {asking.language!r}"
            )
        for name, _, text, sentence in rows.iter_rows():
            denied = asking.negated.replace(DENIED, text)
            result.append(Wording(config, name, "plain", "", sentence))
            result.append(Wording(config, name, "negated", "", denied))
            result += [row for row in paraphrased if row[:2] == (config, name)]
    if missing := {row[:2] for row in paraphrased} - {row[:2] for row in result}:
        config, name = min(missing)
        raise UserError(
            f"{' '.join(asking.paraphrases)}: no statement {name!r} in {config}; remove the row"
        )
    return result


def put(frames: dict[str, str], wordings: list[Wording]) -> list[Question]:
    """Fill every template with every wording; paraphrases are used only in the first template."""
    return [
        Question(config, name, frame, form, variant, text, template.replace(STATEMENT, text))
        for config, name, form, variant, text in wordings
        for number, (frame, template) in enumerate(frames.items())
        if form != "paraphrase" or not number
    ]


def offer(text: str, options: Sequence[str], suffix: str = "") -> str:
    """Return a prompt with numbered options in place of :data:`OPTIONS`, followed by the suffix."""
    listed = "\n".join(f"{n}) {option}" for n, option in enumerate(options, start=1))
    return text.replace(OPTIONS, listed) + (f"\n\n{suffix}" if suffix else "")


def priors(asking: Asking) -> list[Question]:
    """Return the prompts for masked models with content-free texts, which estimate the prior."""
    inputs = asking.mask.calibration_inputs
    return put(asking.mask.frames, [Wording("", "", "prior", text, text) for text in inputs])


def paraphrases(path: str) -> list[Wording]:
    """Read the paraphrases of statements from a file.

    Raises UserError if the file is missing or has other columns, empty texts or duplicates.
    """
    with reading(path, f"every row must have {', '.join(FIELDS)}; see probes.stances"):
        text = decoded(Path(path).read_bytes())
        rows = [row for _, row in records(text, {name: name for name in FIELDS})]
    table = pl.DataFrame(rows, dict.fromkeys(FIELDS, pl.String))
    if "" in table.unpivot()["value"]:
        raise UserError(f"{path}: every row must have {', '.join(FIELDS)}")
    if len(again := table.filter(pl.struct(FIELDS[:3]).is_duplicated())):
        raise UserError(f"{path}: variant {again['variant'][0]} of {again['id'][0]} is a duplicate")
    return [Wording(config, name, "paraphrase", *rest) for config, name, *rest in table.rows()]
