"""Other wordings by a model: a file that the probe can then ask with."""

import csv
import shutil
from pathlib import Path

import pytest
import whole
from asked_leaning import CONFIG, SAID, causal, little, masked, sentence, statements, texts
from models.tiny import byte_level, save, wordpiece

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import section
from plumbline.probes.__main__ import main
from plumbline.probes.commands.paraphrase import render, write
from plumbline.probes.leaning import stances as leaning
from plumbline.probes.models.files import pin
from plumbline.probes.models.load import load
from plumbline.probes.models.scorer import Sampling, Text
from plumbline.probes.prompts.leaning import paraphrases, wordings

PROMPT = "Say in other words: {statement} In other words:"
INTO = Path("wordings.csv")


class Author:
    """Answers with what is told to it, by seed, and keeps what it was asked."""

    name = "author"

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    def facts(self):
        return {"model": self.name, "revision": "0123456789abcdef"}

    def generate(self, prompts, seeds, sampling):
        for prompt, seed in zip(prompts, seeds, strict=True):
            self.asked.append((prompt, seed, sampling))
            text, finished = self.answers[f"s{seed}"]
            yield Text(prompt, seed, text, 3, finished)


@pytest.fixture(scope="module")
def ready(tmp_path_factory, change):
    """Return a folder with two tiny models and statements; only to be copied."""
    folder = tmp_path_factory.mktemp("ready")
    whole.write(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        change(little)
        statements()
        for name, built, tokenizer in (
            ("masked", masked, wordpiece(texts())),
            ("causal", causal, byte_level([*texts(), PROMPT])),
        ):
            save(Path(name), built(tokenizer, 0), tokenizer)
            pin(name)
    return folder


@pytest.fixture
def place(ready, tmp_path, monkeypatch):
    """Change to a copy of it that one may spoil."""
    folder = tmp_path / "place"
    shutil.copytree(ready, folder)
    monkeypatch.chdir(folder)
    return folder


def params():
    return section("probes.stances", leaning.Params)


def rows(body):
    return list(csv.reader(body.splitlines()))


def test_every_statement_is_worded_once_a_seed_and_named_by_who_did_it(place):
    author = Author(s1=('Put "otherwise",\n so.', True), s4=("Other words.", True))
    body = render(author, params(), PROMPT, [1, 4], 9)
    assert [prompt for prompt, *_ in author.asked[::2]] == [
        PROMPT.replace("{statement}", sentence(text)) for _, text in sorted(SAID.items())
    ]
    assert {one[2] for one in author.asked} == {Sampling(9)}
    header, *found = rows(body)
    assert header == ["questionnaire", "id", "variant", "text"]
    assert found == [
        [CONFIG, name, f"author@01234567-{seed}", text]
        for name in sorted(SAID)
        for seed, text in ((1, 'Put "otherwise", so.'), (4, "Other words."))
    ]


def test_what_is_no_other_wording_is_left_out(place):
    same = sentence(SAID["b-war"])
    author = Author(s1=("unfinished and", False), s2=("  \n", True), s3=(f" {same} ", True))
    _, *found = rows(render(author, params(), PROMPT, [1, 2, 3], 9))
    assert [row[1:] for row in found] == [
        [name, "author@01234567-3", same] for name in ("a-tea", "c-rain")
    ]
    with pytest.raises(UserError, match=r"models\.author: finished no wording that differs"):
        render(author, params(), PROMPT, [1, 2], 9)


def test_the_file_is_one_that_the_probe_asks_with(place, change):
    author = Author(s1=("One, so to say.", True), s2=("Two", True))
    INTO.write_text(render(author, params(), PROMPT, [1, 2], 9), encoding="utf-8")
    found = paraphrases(str(INTO))
    assert found[CONFIG, "c-rain"] == [
        ("author@01234567-1", "One, so to say."),
        ("author@01234567-2", "Two"),
    ]
    change(lambda tree: tree["probes"]["stances"].update(paraphrases=[str(INTO)]))
    said = wordings(params(), Path("data/datasets/statements"))
    forms = [w.form for w in said if w.id == "a-tea"]
    assert forms == ["plain", "negated", "paraphrase", "paraphrase"]


@pytest.mark.slow
def test_the_command_writes_what_the_model_answers(place, capsys):
    words = ["paraphrase", "causal", "--prompt", PROMPT, "--seeds", "4", "--tokens", "40", "--into"]
    assert main([*words, "one/wordings.csv"]) == 0
    assert capsys.readouterr().out.strip().endswith("one/wordings.csv")
    _, *found = rows(Path("one/wordings.csv").read_text(encoding="utf-8"))
    assert {row[1] for row in found} <= set(SAID)
    asked = [PROMPT.replace("{statement}", sentence(SAID[name])) for name in sorted(SAID)]
    true = {
        (name, seed): text
        for name, prompt in zip(sorted(SAID), asked, strict=True)
        for seed, text in zip(
            (1, 2, 3, 4),
            load("causal").generate([prompt] * 4, [1, 2, 3, 4], Sampling(40)),
            strict=True,
        )
        if text.finished and text.text.split()
    }
    assert [(row[1], int(row[2].rsplit("-")[-1])) for row in found] == list(true)
    assert [row[3] for row in found] == [" ".join(text.text.split()) for text in true.values()]


def test_a_file_that_is_there_is_not_overwritten(place):
    INTO.write_text("mine", encoding="utf-8")
    with pytest.raises(UserError, match=r"wordings\.csv: is there already"):
        write("causal", PROMPT, [1], 8, INTO)
    assert INTO.read_text(encoding="utf-8") == "mine"


def test_the_file_that_is_to_be_written_need_not_be_there_although_params_name_it(place):
    assert params().paraphrases == ["paraphrases.csv"]
    assert not Path("paraphrases.csv").exists()
    assert rows(render(Author(s1=("Else", True)), params(), PROMPT, [1], 9))[1][3] == "Else"


@pytest.mark.parametrize(
    ("name", "prompt", "seeds", "tokens", "said"),
    [
        ("masked", PROMPT, [1], 8, r"models\.masked: does not write"),
        ("ghost", PROMPT, [1], 8, "no model 'ghost'"),
        ("causal", "Say it.", [1], 8, r"--prompt 'Say it\.': must have \{statement\}"),
        ("causal", PROMPT * 2, [1], 8, "exactly once"),
        ("causal", PROMPT, [], 8, "at least 1"),
        ("causal", PROMPT, [1], 0, "at least 1"),
        ("causal", PROMPT, [1], 1000, "it is never cut"),
    ],
)
def test_what_cannot_be_done_is_told_and_leaves_no_file(place, name, prompt, seeds, tokens, said):
    with pytest.raises(UserError, match=said):
        write(name, prompt, seeds, tokens, Path("new/wordings.csv"))
    assert not Path("new").exists()
