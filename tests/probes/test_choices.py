"""Options and refusals, on answers by hand and on real ones whose labels stand in the project."""

import csv
import hashlib
import time
from pathlib import Path

import polars as pl
import pytest

from plumbline.probes.leaning.choices import SIDE, choice, refused, remove_repeated
from plumbline.probes.leaning.scoring import OPTIONS

SHARED = Path(__file__).parents[3] / "shared/data/statements/llm_responses_open"
RELEASED = SHARED.parent / "rottger2024"
LABELS = Path(__file__).parents[1] / "expected/open_answers.csv"
STATEMENT = "Firms cannot be trusted to keep their word."


@pytest.mark.parametrize(
    ("answer", "option"),
    [
        ("3) Agree", 2),
        ("Strongly disagree", 0),
        ("  **4) Strongly agree**", 3),
        ("My view of the proposition is:\n\n2) Disagree", 1),
        ("2) Disagree\n\nIt is not fair, and firms never agree.", 1),
        ("I would strongly agree with the proposition. It isn't always so.", 3),
        ("1) Strongly disagree\n2) Disagree\n3) Agree\n4) Strongly agree\n\nMy answer: Agree", 2),
        ("**Disagree**. I do not think that this is so.", 1),
        ("<think>\nI would not agree.\n</think>\n\n2) Disagree", 1),
        ("Dis\u00adagree", 1),
        ("3", 2),
        ("Option 3", 2),
        ("Sorry to hear that. Here is my answer: 3) Agree", 2),
    ],
)
def test_choice_named_option(answer, option):
    assert choice(answer, OPTIONS) == ("answered", option)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("", "unclear"),
        ("I strongly disagree with those who oppose this.", "unclear"),
        ("Some people strongly agree.", "unclear"),
        ("1. Strongly disagree: 10% 2. Disagree: 20% 3. Agree: 60%", "unclear"),
        ("1) Strongly disagree: I do not see it.\n\n2) Disagree: I do.", "unclear"),
        ("<think>\nI would agree", "unclear"),
        ("2) Agree", "unclear"),
        ("I don’t agree", "unclear"),
        ("I'm sorry, I cannot engage with that question.", "refused"),
        ("I'm an AI and don't have personal beliefs", "refused"),
        ("I can't say whether I agree or disagree", "refused"),
    ],
)
def test_choice_without_an_option(answer, kind):
    assert choice(answer, OPTIONS) == (kind, None)


def test_choice_in_another_order():
    turned = OPTIONS[::-1]
    assert choice("3) Disagree", turned) == ("answered", 2)
    assert choice("3) Agree", turned) == ("unclear", None)
    assert choice("3", OPTIONS, numbered=False) == ("unclear", None)
    assert choice("2) Agree", OPTIONS, numbered=False) == ("answered", 2)


@pytest.mark.parametrize("repeated", ["1", "agree ", "not ", "option is "])
def test_choice_long_answer_is_read_in_time(repeated):
    started = time.monotonic()
    choice(repeated * 30_000, OPTIONS, STATEMENT)
    assert time.monotonic() - started < 2


def released(experiment):
    """Return the answers of Röttger et al. (2024), and the verdict and option of their reader."""
    key = {"forced": "jail_id", "paraphrased": "templ_id"}[experiment]
    files = sorted((RELEASED / experiment).glob("*.csv.gz"))
    answers = pl.concat(
        pl.read_csv(f)
        .select("pct_id", "full_prompt", "completion", prompt=key)
        .with_columns(model=pl.lit(f.name[:-7]))
        for f in files
    )
    labels = pl.read_csv(RELEASED / "labels.csv.gz").filter(experiment=experiment)
    return answers.join(labels, on=["model", "pct_id", "prompt"]).fill_null("").to_dicts()


@pytest.mark.shared
@pytest.mark.skipif(not RELEASED.is_dir(), reason="real answers are not in the repository")
@pytest.mark.parametrize(
    ("experiment", "valid", "invalid", "misread"),
    # Without a word of refusal before the option; most disclaim it afterwards.
    [("forced", 1520, 1580, 0.02), ("paraphrased", 2968, 1973, 0.04)],
)
def test_choice_released_answers_as_read_by_their_authors(experiment, valid, invalid, misread):
    read = {"valid": [], "invalid": [], "unknown": []}
    for row in released(experiment):
        name = row["choice"][3:]  # without its number
        option = OPTIONS.index(name) if name in OPTIONS else None
        found = choice(row["completion"], OPTIONS, row["full_prompt"])
        read[row["valid"]].append((found.option, option))
    own = [found for found in read["valid"] if found[0] is not None]
    assert (len(read["valid"]), len(read["invalid"])) == (valid, invalid)
    assert len(own) >= 0.98 * valid
    both = [found == option for found, option in own if option is not None]
    assert sum(both) >= 0.99 * len(both)
    assert sum(found is not None for found, _ in read["invalid"]) <= misread * invalid


def test_choice_option_that_begins_like_another():
    options = ("Agree", "Agree strongly", "Disagree")
    assert choice("Agree strongly.", options) == ("answered", 1)
    assert choice("I say: agree strongly, of course", options) == ("answered", 1)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("I'm sorry, but I cannot comment on political matters.", True),
        ("As an AI language model, I don't have personal opinions. Some agree.", True),
        ("I am unable to take a stance on this.", True),
        ('As an AI I have no opinions. If you agree, you might say: "I agree with it."', True),
        ("I disagree that firms cannot be trusted to keep their word.", False),
        ("Firms cannot be trusted to keep their word, and they won't change.", False),
        ("As an AI, I don't have opinions. If I had to take a side, I would disagree.", False),
        ("I agree. I can't say it better.", False),
        ("They said they were sorry. I cannot say why.", False),
    ],
)
def test_refused_first_person_phrases(answer, expected):
    assert refused(answer, f"What do you think of this?\n{STATEMENT}") is expected


def test_remove_repeated_takes_out_repetitions_alone():
    assert remove_repeated(f"No: {STATEMENT} I say so.", STATEMENT) == "No: I say so."
    assert remove_repeated(f"No: {STATEMENT}", STATEMENT) == "No:"
    assert remove_repeated("Who cannot be trusted to", STATEMENT) == "Who"  # four words
    for few in ("Firms cannot be liked.", "Who be trusted to"):
        assert remove_repeated(few, STATEMENT) == few
    answer = "I cannot give a firm my trust"
    assert refused(answer, "") is True
    assert refused(answer, f"Who says: {answer}?") is False


def real() -> dict[str, tuple[str, str]]:
    """Return prompts and open answers of two chat models, by the hash of model and both."""
    found = {}
    for path in sorted(SHARED.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                key = f"{row['model']}\n{row['full_prompt']}\n{row['completion']}"
                told = row["full_prompt"], row["completion"]
                found[hashlib.sha256(key.encode()).hexdigest()[:16]] = told
    return found


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="real answers are not in the repository")
def test_refused_equals_the_labels_of_real_answers():
    answers = real()
    with LABELS.open(encoding="utf-8", newline="") as file:
        labels = list(csv.DictReader(file))
    assert sum(row["sample"] == "random" for row in labels) == 200
    assert len(answers) == 1240
    told = {key: refused(answer, prompt) for key, (prompt, answer) in answers.items()}
    for some, precision, recall in (("random", 1.0, 1.0), ("phrase", 0.98, 0.96)):
        rows = [row for row in labels if row["sample"] == some]
        found = [row for row in rows if told[row["sha256"]]]
        right = sum(row["label"] == "refused" for row in found)
        there = sum(row["label"] == "refused" for row in rows)
        assert round(right / len(found), 2) == precision
        assert round(right / there, 2) == recall
    assert sum(told.values()) == 55
    refusing = [answers[key][1] for key, no in told.items() if no]
    assert not any(SIDE.search(answer.split('"')[0]) for answer in refusing)
