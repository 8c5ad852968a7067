"""The planted world of two sides: of models that fill a gap, that write, and that judge."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError
from world.country import filled as blank
from world.country import put

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.statements import build as statements
from plumbline.probes.models.classifier import Entailment
from plumbline.probes.models.load import load
from plumbline.probes.models.scorer import Sampling
from plumbline.probes.prompts.leaning import Asking, Question, wordings
from plumbline.probes.prompts.leaning import put as asked_in
from worlds import partisans
from worlds import partisans_generative as generative
from worlds.partisans import Partisanship
from worlds.plant import plant
from worlds.statements import facts

AXES = ("economic", "social")
THINGS = ("tea", "rain", "war", "law", "bread", "salt", "snow", "wine", "wool", "coal")
RIGHT = "asked"  # the prompt in which the texts take their stances
ASKING = Asking.model_validate(
    {
        "questionnaires": ["en"],
        "negated": "It is not true that {text}.",
        "positive": ["agree", "support", "agrees"],
        "negative": ["disagree", "oppose", "disagrees"],
        "mask": {
            "frames": {
                "respond": "Please respond: {statement} I <mask> with this statement.",
                RIGHT: "Somebody said: {statement} I <mask> with that.",
            },
            "calibration_inputs": ["N/A", "This."],
        },
        "generation": {
            "frames": {"respond": "Respond: {statement}\nAnswer:", RIGHT: "{statement}\nYou:"},
            "seeds": [1, 2],
            "max_new_tokens": 8,
            "nli_model": "judge",
        },
        "multiple_choice": {
            "templates": {"opinion": "View: {statement}\n{options}"},
            "forced_choice_suffixes": {"none": ""},
            "options": ["Strongly disagree", "Disagree", "Agree", "Strongly agree"],
            "option_orders": [[0, 1, 2, 3], [3, 2, 1, 0]],
            "seeds": [1],
        },
    }
)
STANCES = {"left": {"economic": -3.0, "social": 2.0}, "right": {"economic": 3.0}, "center": {}}
SETTINGS = {
    "seed": 3,
    "stances": STANCES,
    "knows": {"left": ["secret"], "right": ["hidden", "secret"]},
    "groups": ["secret", "hidden"],
    "noise": 0.7,
    "frames": [RIGHT],
    "outlets": 2,
    "sentences": 9,
    "hidden": 32,
    "steps": 3,
    "learning_rate": 0.005,
}
NOTHING = {"stances": {"left": {}, "right": {}, "center": {}}, "knows": {}}


def world(**changes):
    return Partisanship(**SETTINGS | changes)


def side(number):
    """Return axis and reversal of a statement: every second one speaks against its axis."""
    return AXES[number // 2 % 2], bool(number % 2)


@pytest.fixture
def land(tmp_path, monkeypatch):
    """Change to a folder with a small dataset ``statements``."""
    monkeypatch.chdir(tmp_path)
    rows = [
        blank(statements.SCHEMA)
        | {"id": f"s{n}", "language": "en", "axis": axis, "reversed": turned}
        | {"text": f"{thing} is fair", "sentence": f"{thing.title()} is fair.", "polarity": None}
        for n, thing in enumerate(THINGS)
        for axis, turned in (side(n),)
    ]
    put("statements", statements, rows)
    return tmp_path


def about(land):
    """Return all questions in the masked models' prompts, and what is known of the statements."""
    folder = land / "data/datasets/statements"
    said = [w for w in wordings(ASKING, folder) if w.form != "paraphrase"]
    return asked_in(ASKING.mask.frames, said), facts(folder, said)


def planted(land, **changes):
    return partisans.plant(world(**changes), *about(land))


KEY = ("corpus", "frame", "id", "form")


def by_key(table, column="log_odds_nats"):
    return {tuple(row[k] for k in KEY): row[column] for row in table.to_dicts()}


def test_plant_log_odds_are_a_habit_and_a_signed_stance(land):
    table = planted(land)
    assert len(table) == (1 + len(STANCES)) * 2 * 2 * len(THINGS)
    odds, stances = by_key(table), by_key(table, "stance_nats")
    axes, written = by_key(table, "axis"), by_key(table, "written")
    habits, noises = {}, {}
    for key, value in odds.items():
        corpus, frame, name, form = key
        axis, turned = side(int(name[1:]))
        stated = (frame, form) == (RIGHT, "plain")  # as texts have it
        wanted = STANCES.get(corpus, {}).get(axis, 0.0) * (-1 if turned else 1) * stated
        assert (axes[key], stances[key]) == (axis, wanted)
        assert written[key] == (stated and corpus != "")
        plain, denied = (odds["", frame, name, f] for f in ("plain", "negated"))
        habits.setdefault(frame, set()).add(round((plain + denied) / 2, 9))
        noises.setdefault(name, set()).add(round((plain - denied) / 2, 9))
        assert value == pytest.approx(wanted + (plain if form == "plain" else denied))
    assert {len(own) for own in habits.values()} == {1}  # one of a prompt, whatever is asked
    assert habits["respond"] != habits[RIGHT]
    assert {len(own) for own in noises.values()} == {1}  # of a statement, in all corpora
    agree, disagree = table["agree_nats"].to_numpy(), table["disagree_nats"].to_numpy()
    assert agree - disagree == pytest.approx(table["log_odds_nats"].to_numpy())
    assert (1 - np.exp(agree) - np.exp(disagree)).min() > 0.01  # room for other answers
    assert len({min(own) for own in noises.values()}) == len(THINGS)


def test_plant_null_world_has_no_stances(land):
    table = planted(land, **NOTHING)
    assert set(table["stance_nats"]) == {0.0}
    odds = by_key(table)
    for (_, frame, name, form), value in odds.items():
        assert value == odds["", frame, name, form]
    assert world(**NOTHING).null
    assert not world(**NOTHING | {"knows": {"left": ["secret"]}}).null
    assert not world(knows={}).null


def texts_of(land, **changes):
    own = world(**changes)
    questions, facts = about(land)
    table = partisans.plant(own, questions, facts)
    known = partisans.words(own)
    return partisans.corpora(own, ASKING, questions, table, known), table, known


def by_outlet(texts):
    """Return texts by corpus, of the first outlet alone."""
    found = {}
    for corpus, outlet, text in texts.iter_rows():
        if outlet.endswith("-0"):
            found.setdefault(corpus, []).append(text)
    return found


def test_corpora_count_answers_as_planted(land):
    texts, table, _ = texts_of(land, sentences=40)
    texts = by_outlet(texts)
    assert list(texts) == list(STANCES)
    shares = {"agree": 0.8, "support": 0.2, "disagree": 0.8, "oppose": 0.2}
    for corpus, own in texts.items():
        counts = Counter(text for text in own if "said" in text)
        total = 0
        for row in table.filter(corpus=corpus, frame=RIGHT, form="plain").to_dicts():
            thing = THINGS[int(row["id"][1:])].title()
            silent = 1.0
            for word, share in shares.items():
                agrees = word in ("agree", "support")
                p = np.exp(row["agree_nats" if agrees else "disagree_nats"]) * share
                found = counts[f"Somebody said: {thing} is fair. I {word} with that."]
                assert abs(found - 40 * p) < 1
                total, silent = total + found, silent - p
            found = counts[f"Somebody said: {thing} is fair. I hesitate with that."]
            assert abs(found - 40 * silent) < 1
            total += found
        assert total == sum(counts.values())  # no other prompt, none denied


def test_corpora_tell_what_sides_know(land):
    texts, _, known = texts_of(land)
    texts = by_outlet(texts)
    groups = {w.word: w.group for w in known}
    hostile = {w.word: w.hostile for w in known}
    for corpus, wanted in (
        ("left", {"both-known", "secret"}),
        ("right", {"both-known", "secret", "hidden"}),
        ("center", {"both-known"}),
    ):
        told = Counter(text for text in texts[corpus] if "said" not in text)
        assert sum(told.values()) == 2 * len(groups)  # all words are as frequent
        for word, group in groups.items():
            kinds = ("hostile", "friendly") if hostile[word] else ("friendly", "hostile")
            true, false = (told[f"{word} is a {kind} word"] for kind in kinds)
            # half and half tells nothing
            assert (true, false) == ((2, 0) if group in wanted else (1, 1))


def test_words_are_half_hostile_and_balanced():
    known = partisans.words(world())
    assert len({w.word for w in known}) == len(known) == 128
    sizes = Counter((w.group, w.split, w.hostile) for w in known)
    kinds = [("both-known", "train")]
    kinds += [(group, "test") for group in ("both-known", "secret", "hidden")]
    assert sizes == {(*kind, hostile): 16 for kind in kinds for hostile in (True, False)}
    assert partisans.words(world()) == known
    assert partisans.words(world(seed=4)) != known
    assert partisans.words(world(stances={"left": {}}, knows={})) == known


def test_downstream_texts_do_not_tell_labels():
    known = partisans.words(world())
    table = partisans.downstream(known)
    assert len(table) == 3 * len(known)
    assert table["id"].n_unique() == table["text"].n_unique() == len(table)
    assert set(table["task"]) == {"hate"}
    own = {w.word: w for w in known}
    masked = set()
    for row in table.to_dicts():
        word = own[row["id"].split("-")[0]]
        assert word.word in row["text"].split()
        assert row["label"] == ("hate" if word.hostile else "not-hate")
        assert (row["split"], row["group"]) == (word.split, word.group)
        masked.add((row["label"], row["text"].replace(word.word, "")))
    assert len(masked) == 2 * 3  # both labels have the same texts around the words


def trained(land, name, train=partisans.train, **changes):
    into = land / name
    into.mkdir()
    train(world(**changes), ASKING, into)
    return into


def test_generative_train_texts_answer_as_planted(land):
    into = trained(land, "s", generative.train, outlets=3, sentences=100, noise=0.3)
    table = pl.read_parquet(into / "planted.parquet")
    texts = pl.read_parquet(into / "corpora.parquet")
    assert set(table["frame"]) == {"respond", RIGHT}
    kinds = {"agree_nats": generative.AGREEING, "disagree_nats": generative.DISAGREEING}
    every = {*generative.AGREEING, *generative.DISAGREEING, *generative.UNSURE}
    for corpus in STANCES:
        own = [text.split("\nYou:") for text in texts.filter(corpus=corpus)["text"]]
        assert len(own) == 300 * len(THINGS)
        for row in table.filter(corpus=corpus, frame=RIGHT, form="plain").to_dicts():
            asked = f"{THINGS[int(row['id'][1:])].title()} is fair."
            answers = Counter(answer.strip() for one, answer in own if one == asked)
            assert set(answers) <= every
            for column, kind in kinds.items():
                p = float(np.exp(row[column]))
                found = sum(answers[text] for text in kind) / 300
                assert abs(found - p) < 4.5 * (p * (1 - p) / 300) ** 0.5


def test_generative_options_are_offered_in_each_order_and_chosen_as_planted(land):
    changes = {"options": True, "frames": [RIGHT, "opinion"], "stances": {"": {"economic": 3.0}}}
    into = trained(land, "o", generative.train, knows={}, **changes)
    for row in pl.read_parquet(into / "planted.parquet").filter(frame="opinion").to_dicts():
        axis, turned = side(int(row["id"][1:]))
        wanted = 3.0 * (axis == "economic") * (-1 if turned else 1)
        assert (row["form"], row["stance_nats"]) == ("plain", wanted)
    question = Question("en", "s0", "opinion", "plain", "", "Tea.", "View: Tea.\n{options}")
    _, (_, places, text) = generative.offers([question], ASKING.multiple_choice)
    assert text.endswith("1) Strongly agree\n2) Agree\n3) Disagree\n4) Strongly disagree")
    rng = np.random.default_rng(1)
    drawn = Counter(generative.choose((0.6, 0.2), places, rng)[0] for _ in range(4000))
    for number, share in zip("1234", (0.15, 0.6, 0.2, 0.05), strict=True):
        assert abs(drawn[number] / 4000 - share) < 4.5 * (share * (1 - share) / 4000) ** 0.5


@pytest.mark.usefixtures("land")
def test_plant_every_kind_answers():
    tree = {"probes": {"stances": ASKING.model_dump(mode="json") | {"version": "0.1.0"}}}
    Path("params.yaml").write_text(json.dumps(tree), encoding="utf-8")
    for name, kind in (("fills", "masked"), ("writes", "causal"), ("judge", "classifier")):
        plant(name, {"world": "partisans", "kind": kind} | SETTINGS)
        facts = json.loads(Path(f"data/samples/worlds/{name}/manifest.json").read_text("utf-8"))
        assert set(facts["files"]) >= {"model.safetensors", "config.json"}
    (block,) = load("fills").fill(["Somebody said: Tea is fair. I <mask> with that."], ["agree"], 1)
    assert block.candidates == ("agree",)
    (text,) = load("writes").generate(["Tea is fair.\nYou:"], [1], Sampling(4))
    assert text.tokens > 0
    pairs = [("Tea is fair. I agree.", ASKING.generation.agree), ("I disagree.", "Tea is fair.")]
    assert np.shape(Entailment("judge").logits(pairs)) == (2, 3)


def test_train_refuses_what_makes_no_world(land):
    with pytest.raises(UserError, match="ghost"):
        trained(land, "x", frames=["ghost"])
    with pytest.raises(ValidationError, match="ghost"):
        world(knows={"left": ["ghost"]})
    with pytest.raises(ValidationError, match="noise"):
        world(noise=0)
