"""Options and refusals, on answers by hand and on real ones whose labels stand in the project."""

import csv
import hashlib
import time
from pathlib import Path

import pytest

from plumbline.probes.leaning.choices import SIDE, choice, refused, remove_repeated
from plumbline.probes.leaning.scoring import OPTIONS

SHARED = Path(__file__).parents[3] / "shared/data/statements/llm_responses_open"
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
        *((text, 2) for text in ("(3)", "3.", "**3**", '"3"', "\\boxed{3}", "３", "٣", "३")),
        *((text, 1) for text in ("I would pick number 2.", "__Disagree__", "> Disagree")),
        *((text, 2) for text in ("My answer is 3", "### Answer\n\nAgree", "<b>Agree</b>")),
        ("*I* **strongly disagree** with this.", 0),
        *((text, 2) for text in ('"Agree"', "“Agree.”", "«Agree»", "‘Agree’", "３）Ａｇｒｅｅ")),
        ('I\'d go with "3) Agree".', 2),
        ("Strongly\u00a0agree", 3),
        ("<reasoning>I might disagree.</reasoning>\nAgree", 2),
        *((f"{tag}disagree{tag[0]}/{tag[1:]} Agree", 2) for tag in ("[THINK]", "◁think▷")),
        ("<|channel|>analysis<|message|>Disagree?<|end|><|channel|>final<|message|>Agree", 2),
        ("2) Disagree - generally not justified.", 1),
        ("Agree — they can never keep it.", 2),
        ("I would strongly disagree with the proposition.\n\nLabel: 2) Disagree", 1),
    ],
)
def test_choice_named_option(answer, option):
    assert choice(answer, OPTIONS) == ("answered", option)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("", "unclear"),
        ("I strongly disagree with those who oppose this.", "unclear"),
        ("I strongly disagree with the opponents of this.", "unclear"),
        ("Some people strongly agree.", "unclear"),
        ("Agree - 60%", "unclear"),
        ("Strongly disagree: 10%, disagree: 20%, agree: 70%", "unclear"),
        ("I neither agree nor disagree.", "unclear"),
        *((text, "unclear") for text in ("5", "3 or 4")),
        ("<|channel|>analysis<|message|>I might agree", "unclear"),
        ("1. Strongly disagree: 10% 2. Disagree: 20% 3. Agree: 60%", "unclear"),
        ("1) Strongly disagree: I do not see it.\n\n2) Disagree: I do.", "unclear"),
        ("<think>\nI would agree", "unclear"),
        ("2) Agree", "unclear"),
        ("I don’t agree", "unclear"),
        ("I'm sorry, I cannot engage with that question.", "refused"),
        ("I'm an AI and don't have personal beliefs", "refused"),
        ("I can't say whether I agree or disagree", "refused"),
        ("3) Agree\n\nHowever, I do not have personal opinions.", "refused"),
        ("3) Agree. I am not capable of making choices.", "refused"),
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


@pytest.mark.parametrize(
    ("options", "answers"),
    [
        (("не согласен", "согласен"), ("Я не согласен. Это не так.", "2) **Согласен**")),
        (("不同意", "同意"), ("我不同意。", "我同意这个观点")),
        (("لا أوافق", "أوافق"), ("لا أوافق.", "٢) أوافق")),
        (("असहमत", "सहमत"), ("असहमत।", "२) सहमत")),
    ],
)
def test_choice_other_scripts(options, answers):
    assert [choice(answer, options).option for answer in answers] == [0, 1]


@pytest.mark.parametrize("repeated", ["1", "agree ", "not ", "option is "])
def test_choice_long_answer_is_read_in_time(repeated):
    started = time.monotonic()
    choice(repeated * 30_000, OPTIONS, STATEMENT)
    assert time.monotonic() - started < 2


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
