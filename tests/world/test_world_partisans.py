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
from plumbline.probes.leaning import stances as leaning
from plumbline.probes.models.classifier import Entailment
from plumbline.probes.models.load import load
from plumbline.probes.models.masked import Masked
from plumbline.probes.models.scorer import Sampling
from plumbline.probes.prompts.leaning import Asking, wordings
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
            "templates": {},
            "forced_choice_suffixes": {"none": ""},
            "options": ["Strongly disagree", "Disagree", "Agree", "Strongly agree"],
            "option_orders": [[0, 1, 2, 3]],
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
    state(["fair"] * len(THINGS))
    return tmp_path


def state(qualities):
    """Put a small dataset ``statements`` in place: each thing with its quality."""
    rows = [
        blank(statements.SCHEMA)
        | {"id": f"s{n}", "language": "en", "axis": axis, "reversed": turned}
        | {"text": f"{thing} is {quality}", "sentence": f"{thing.title()} is {quality}."}
        | {"polarity": None}
        for n, (thing, quality) in enumerate(zip(THINGS, qualities, strict=True))
        for axis, turned in (side(n),)
    ]
    put("statements", statements, rows)


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


def test_log_odds_are_a_habit_and_a_signed_stance_with_noise(land):
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
    assert len({min(own) for own in noises.values()}) == len(THINGS)


def test_answers_make_the_log_odds_and_leave_room_for_others(land):
    table = planted(land)
    agree, disagree = table["agree_nats"].to_numpy(), table["disagree_nats"].to_numpy()
    assert agree - disagree == pytest.approx(table["log_odds_nats"].to_numpy())
    rest = 1 - np.exp(agree) - np.exp(disagree)
    assert rest.min() > 0.01
    assert len(set(rest.round(9))) == len(THINGS)  # of a statement, whoever is asked and how


def test_noise_is_as_large_as_told_and_another_seed_is_another_world(land):
    questions, facts = about(land)
    drawn = []
    for seed in range(40):
        table = partisans.plant(world(seed=seed), questions, facts)
        wide = by_key(table.filter(pl.col("corpus") == ""))
        plain, denied = (
            np.array([wide["", RIGHT, f"s{n}", form] for n in range(len(THINGS))])
            for form in ("plain", "negated")
        )
        drawn.append((plain - denied) / 2)
    every = np.array(drawn)
    print(f"mean {every.mean():.3f}, SD {every.std():.3f}")
    assert abs(every.mean()) < 4 * 0.7 / 20  # of 400
    assert every.std() == pytest.approx(0.7, rel=4 / np.sqrt(800))
    assert len({tuple(row) for row in every.round(9).tolist()}) == 40


def test_nothing_is_planted_in_the_null_world(land):
    table = planted(land, **NOTHING)
    assert set(table["stance_nats"]) == {0.0}
    odds = by_key(table)
    for (_, frame, name, form), value in odds.items():
        assert value == odds["", frame, name, form]
    assert world(**NOTHING).null
    assert world(**NOTHING, groups=[]).null
    assert world(stances={"left": {"economic": 0.0}}, knows={"left": []}).null
    assert not world().null
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
    for corpus, outlet, text in texts:
        if outlet.endswith("-0"):
            found.setdefault(corpus, []).append(text)
    return found


def test_outlets_draw_texts_of_their_own(land):
    texts, *_ = texts_of(land)
    own = {
        outlet: Counter(text for _, o, text in texts if o == outlet)
        for outlet in dict.fromkeys(o for _, o, _ in texts)
    }
    assert len(own) == 2 * len(STANCES)
    assert own["left-0"] != own["left-1"]


def test_counts_of_answers_are_what_is_planted_to_less_than_one(land):
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


def test_corpora_tell_the_words_that_they_know(land):
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


def test_words_are_made_up_half_hostile_and_learnt_only_in_part():
    known = partisans.words(world())
    assert len({w.word for w in known}) == len(known) == 128
    sizes = Counter((w.group, w.split, w.hostile) for w in known)
    kinds = [("both-known", "train")]
    kinds += [(group, "test") for group in ("both-known", "secret", "hidden")]
    assert sizes == {(*kind, hostile): 16 for kind in kinds for hostile in (True, False)}
    assert partisans.words(world()) == known
    assert partisans.words(world(seed=4)) != known
    assert partisans.words(world(stances={"left": {}}, knows={})) == known


def test_texts_to_classify_do_not_tell_what_the_words_mean():
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


def test_leftovers_are_drawn_with_their_probability():
    rng = np.random.default_rng(5)
    found = np.array([partisans.allot(np.array([0.25, 2.0, 3.9]), rng) for _ in range(2000)])
    assert {tuple(set(column)) for column in found.T} == {(0, 1), (2,), (3, 4)}
    assert found.mean(axis=0) == pytest.approx([0.25, 2.0, 3.9], abs=4 * 0.43 / 2000**0.5)


TRAINED = (partisans.train, generative.train, generative.judge)
FILES = {"planted.parquet", "corpora.parquet", "downstream.parquet", "world.json"}


def trained(land, name, train=partisans.train, **changes):
    into = land / name
    into.mkdir()
    train(world(**changes), ASKING, into)
    return into


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("train", TRAINED)
def test_the_same_world_has_the_same_bytes_and_another_seed_others(land, train):
    one = contents(trained(land, "one", train))
    assert contents(trained(land, "two", train)) == one
    assert "model.safetensors" in one
    assert (set(one) >= FILES) == (train is not generative.judge)
    other = contents(trained(land, "other", train, seed=4))
    assert other["model.safetensors"] != one["model.safetensors"]
    if train is not generative.judge:
        assert other["planted.parquet"] != one["planted.parquet"]
        assert json.loads(one["world.json"])["stances"] == STANCES


@pytest.mark.parametrize("train", TRAINED)
def test_a_batch_may_be_larger_than_all_that_there_is(land, train):
    assert (trained(land, "large", train, batch=4096) / "model.safetensors").is_file()


def test_what_is_written_is_what_is_planted(land):
    into = trained(land, "w")
    texts, table, known = texts_of(land)
    assert pl.read_parquet(into / "planted.parquet").equals(table)
    assert pl.read_parquet(into / "downstream.parquet").equals(partisans.downstream(known))
    corpora = pl.read_parquet(into / "corpora.parquet")
    assert corpora.rows() == texts
    scorer = Masked(into, "w", "r", dtype="float64")
    answers = ["agree", "support", "disagree", "oppose", "hesitate"]
    assert scorer.vocabulary([*answers, *(w.word for w in known)], "en").missing == ()
    encoded = scorer.tokens.encode(corpora["text"].to_list())
    assert not any(scorer.tokens.unknown(ids) for ids in encoded)


def test_texts_of_those_who_write_answer_as_planted(land):
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


def test_a_judge_is_a_model_of_entailment_by_its_labels(land):
    into = trained(land, "j", generative.judge)
    assert sorted(path.name for path in into.iterdir()) == [
        *("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    ]
    labels = json.loads((into / "config.json").read_text("utf-8"))["id2label"]
    assert list(labels.values()) == ["contradiction", "neutral", "entailment"]


@pytest.fixture
def planting(land):
    """Return what plants worlds by their settings, as the command ``plant`` does."""

    def put_in(**models):
        tree = {"probes": {"stances": ASKING.model_dump(mode="json") | {"version": "0.1.0"}}}
        Path("params.yaml").write_text(json.dumps(tree), encoding="utf-8")
        for name, (kind, changes) in models.items():
            plant(name, {"world": "partisans", "kind": kind} | SETTINGS | changes)

    return put_in


def test_worlds_of_every_kind_are_planted_and_answer(planting):
    silent = {"groups": [], "knows": {}}
    planting(fills=("masked", {}), writes=("causal", silent), judge=("classifier", {}))
    for name in ("fills", "writes", "judge"):
        facts = json.loads(Path(f"data/samples/worlds/{name}/manifest.json").read_text("utf-8"))
        assert set(facts["files"]) >= {"model.safetensors", "config.json"}
    (block,) = load("fills").fill(["Somebody said: Tea is fair. I <mask> with that."], ["agree"], 1)
    assert block.candidates == ("agree",)
    (text,) = load("writes").generate(["Tea is fair.\nYou:"], [1], Sampling(4))
    assert text.tokens > 0
    pairs = [("Tea is fair. I agree.", ASKING.generation.agree), ("I disagree.", "Tea is fair.")]
    assert np.shape(Entailment("judge").logits(pairs)) == (2, 3)


@pytest.mark.slow
def test_a_trained_model_says_what_was_planted(land):
    # the model reads too: things that stand in one and the same place are one word to it
    state([f"{letter * 3}ish" for letter in "bdfgklmnpr"[: len(THINGS)]])
    into = trained(land, "w", steps=500, hidden=64, batch=32)
    scorer = Masked(into, "w", "r", dtype="float64")
    params = leaning.Params.model_validate(
        ASKING.model_dump()
        | {"version": "0.1.0", "positive": ["agree", "support"]}
        | {"negative": ["disagree", "oppose"]}
    )
    questions, _ = about(land)
    rows = list(leaning.fill_masks(questions, scorer, params))
    table = planted(land).filter(pl.col("corpus") == "")
    told = np.array([row["agree_nats"] - row["disagree_nats"] for row in rows])
    wanted = table["log_odds_nats"].to_numpy()
    likeness, off = np.corrcoef(told, wanted)[0, 1], np.abs(told - wanted).mean()
    print(f"correlation {likeness:.3f}, off {off:.3f}")
    assert likeness > 0.95
    assert off < 0.25
    best = {row["words"][0] for row in rows}
    assert best <= {"agree", "disagree", "hesitate"}


@pytest.mark.slow
def test_a_trained_judge_knows_answers_and_not_what_they_are_about(planting):
    longer = {"steps": 1500, "layers": 2, "hidden": 64, "batch": 32, "learning_rate": 0.004}
    planting(judge=("classifier", longer))
    judged = Entailment("judge")
    both = (ASKING.generation.agree, ASKING.generation.disagree)
    follows, contradicts = judged.follows, judged.contradicts
    for said in ("Tea is fair.", "It is not true that rain is fair."):
        for texts, sign in ((generative.AGREEING, 1), (generative.DISAGREEING, -1)):
            for text in texts:
                pairs = [(f"{said} {text}", h) for h in both]
                for_it, against, alone = judged.logits([*pairs, (text, said)])
                assert sign * (for_it[follows] - against[follows]) > 2
                assert sign * (alone[follows] - alone[contradicts]) > 2
        for text in generative.UNSURE:
            for_it, against = judged.logits([(f"{said} {text}", h) for h in both])
            assert abs(for_it[follows] - against[follows]) < 2


@pytest.mark.parametrize("train", [partisans.train, generative.train])
def test_a_prompt_that_is_not_there_is_told(land, train):
    with pytest.raises(UserError, match=r"partisanship\.frames: no 'ghost' among the prompts"):
        trained(land, "x", train, frames=["ghost"])


def test_data_that_were_not_validated_are_refused(land):
    Path("data/validation/statements.json").unlink()
    for number, train in enumerate(TRAINED):
        with pytest.raises(UserError, match="statements"):
            trained(land, str(number), train)


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        *(("noise", 0), ("stances", {}), ("sentences", 0), ("steps", 0), ("batch", 1), ("x", 1)),
        *(("knows", {"left": ["ghost"]}), ("knows", {"ghost": ["secret"]})),
    ],
)
def test_settings_that_make_no_world_are_refused(key, wrong):
    with pytest.raises(ValidationError, match="ghost" if key == "knows" else rf"\n{key}\n"):
        world(**{key: wrong})


def test_kinds_without_such_a_world_are_refused():
    with pytest.raises(UserError, match="masked or causal or classifier, not seq2seq"):
        plant("x", {"world": "partisans", "kind": "seq2seq"} | SETTINGS)
