"""The probe `completions`, held against plain forwards of the same model."""

import numpy as np
import polars as pl
import pytest
import torch
from models.tiny import bert, byte_level, save, wordpiece
from models.tiny_causal import gpt2
from pydantic import ValidationError
from transformers import RobertaConfig, RobertaForMaskedLM

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.causal import Causal
from plumbline.probes.models.masked import Masked
from plumbline.probes.prompts.groups import Frames, Query, prompted, queries
from plumbline.probes.stereotypes.completions import Params, attributes, run

GROUPS = ("old nurses", "sailors", "night bakers guild")
WORDS = ("calm", "loud", "shy", "brave")
PEOPLE = ("why are {group} so", "what makes {group} so")
TEXTS = [f"{t.replace('{group}', g)} {w}?" for t in PEOPLE for g in GROUPS for w in WORDS]
FRAMES = Frames(
    templates={"people": list(PEOPLE), "country": ["why is {group} so"]},
    released="Why are <mask> so <mask>",
    neutral={"people": "people", "country": "this country"},
)
ASKED = [Query("profession", g, "people", t) for g in GROUPS for t in PEOPLE]
SENTENCES = [*TEXTS, "Why are people so calm", "What makes people so", "this country is"]


def wordpiece_model(folder):
    tokenizer = wordpiece(SENTENCES)
    return Masked(save(folder, bert(tokenizer), tokenizer), "tiny", "r1", dtype="float64")


def byte_level_model(folder):
    tokenizer = byte_level(SENTENCES)
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 40, "max_position_embeddings": 64, "initializer_range": 0.3}
    sizes |= {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    config = RobertaConfig(**sizes)
    model = RobertaForMaskedLM(config)
    return Masked(save(folder, model, tokenizer), "tiny", "r1", dtype="float64")


def plain(scorer, text):
    """Return the log-probabilities at the last mask, and how many tokens the text has."""
    tokenizer = scorer.tokens.tokenizer
    ids = tokenizer(text.replace("<mask>", tokenizer.mask_token))["input_ids"]
    last = max(i for i, token in enumerate(ids) if token == tokenizer.mask_token_id)
    with torch.no_grad():
        logits = scorer.model(input_ids=torch.tensor([ids])).logits[0, last]
    return torch.log_softmax(logits, -1).numpy(), len(ids)


def answers(scorer, top_k=9, *, causal=False):
    (table,) = run(ASKED, FRAMES, scorer, top_k, "en", causal=causal)
    return pl.from_arrow(table)


@pytest.mark.parametrize("make", [wordpiece_model, byte_level_model])
def test_run_priors_are_plain_forwards(make, tmp_path):
    scorer = make(tmp_path)
    rows = answers(scorer)
    known = scorer.tokens.tokenizer.get_vocab()
    unknown = scorer.tokens.tokenizer.unk_token_id
    lengths = set()
    assert rows["query"].unique().sort().to_list() == sorted(q.text for q in ASKED)
    released, _ = plain(scorer, "Why are <mask> so <mask>")
    for (query,), part in rows.group_by("query", maintain_order=True):
        text = query[:1].upper() + query[1:]
        group = part["group"][0]
        posterior, tokens = plain(scorer, f"{text} <mask>?")
        one, with_one = plain(scorer, f"{text.replace(group, '<mask>')} <mask>?")
        many = " ".join(["<mask>"] * (tokens - with_one + 1))
        same, as_long = plain(scorer, f"{text.replace(group, many)} <mask>?")
        assert as_long == tokens
        lengths.add(tokens - with_one + 1)
        ids = [known[token] for token in part["token"]]
        order = np.argsort(-posterior, kind="stable")[:9]
        assert set(ids) == set(order.tolist())
        assert part["rank"].to_list() == list(range(1, 10))
        bare = [known.get(word, unknown) for word in part["word"]]
        for column, true in (
            ("logprob_nats", posterior[ids]),
            ("prior_nats", same[ids]),
            ("prior_one_nats", one[ids]),
            ("prior_released_nats", released[bare]),
        ):
            assert np.abs(part[column].to_numpy() - true).max() < 2e-6, column
        kept = part["logprob_nats"].to_numpy()
        top = np.log(np.exp(kept) / np.exp(kept).sum())
        assert np.abs(part["logprob_top_nats"].to_numpy() - top).max() < 2e-6
    assert len(lengths) > 1  # groups of several lengths, or nothing was tested


def test_run_causal(tmp_path):
    tokenizer = byte_level(SENTENCES)
    folder = save(tmp_path, gpt2(tokenizer), tokenizer)
    scorer = Causal(folder, "tiny", "r1", dtype="float64")
    rows = answers(scorer, causal=True)
    assert rows["prior_one_nats"].is_null().all()
    assert rows["prior_released_nats"].is_null().all()
    assert rows["prompt"][0] == "Why are old nurses so"
    for row in rows.filter(pl.col("starts_word")).iter_rows(named=True):
        given = ("why are people so", "what makes people so")["makes" in row["query"]]
        given = given[:1].upper() + given[1:]
        pairs = [(row["prompt"], f" {row['word']}"), (given, f" {row['word']}")]
        post, prior = (score.logprob_nats for score in scorer.logprobs(pairs))
        assert row["logprob_nats"] == pytest.approx(post, abs=1.1e-6)
        assert row["prior_nats"] == pytest.approx(prior, abs=1.1e-6)


@pytest.fixture
def folders(tmp_path):
    """Two datasets of three groups, one of them spelled in two ways."""
    groups = {"category": ["age", "age", "country"], "kind": [0, 0, 1]}
    groups |= {"group": ["millenials", "kids", "Malta"], "name": ["millennials", "kids", "Malta"]}
    said = {
        "language": ["en", "en", "cs"],
        "category": ["age", "age", "country"],
        "group": ["millennials", "millenials", "malta"],
        "attribute": ["Tall", "so calm", "hot"],
        "template": ["why are {group} so", "why are {group} so good at", "why is {group} so"],
    }
    for name, columns in (("social_groups", groups), ("stereotypes", said)):
        (tmp_path / name).mkdir()
        pl.DataFrame(columns).write_parquet(tmp_path / name / "en.parquet")
    return {name: tmp_path / name for name in ("social_groups", "stereotypes")}


def test_queries_spellings(folders):
    asking = Params(version="1.0.0", frames={"en": FRAMES})
    texts = {q.text for q in queries(asking, folders, "en")}
    assert "why are millenials so" in texts
    assert len(texts) == 2 * len(PEOPLE) + 1
    usual = asking.model_copy(update={"spelling": "usual", "groups": "suggested"})
    found = queries(usual, folders, "en")
    assert {q.text for q in found} == {t.replace("{group}", "millennials") for t in PEOPLE}
    assert {q.group for q in found} == {"millenials"}  # the paper's, so that tables join
    none = asking.model_copy(update={"groups": "suggested", "frames": {"cs": FRAMES}})
    with pytest.raises(UserError, match="no group to prompt for in 'cs'"):
        queries(none, folders | {"social_groups": with_czech(folders["social_groups"])}, "cs")


def test_prompted_rewritten_suggestion(folders):
    asking = Params(version="1.0.0", frames={"en": FRAMES})
    found = prompted(asking, folders, "en")
    assert found[:-1] == queries(asking, folders, "en")
    assert (found[-1].text, found[-1].rewritten) == ("why are millenials so good at", True)
    assert not any(q.rewritten for q in found[:-1])


def with_czech(folder):
    pl.read_parquet(folder / "en.parquet").head(2).write_parquet(folder / "cs.parquet")
    return folder


def test_attributes_spellings(folders):
    found = attributes(folders["stereotypes"], "en")
    assert list(found) == ["so calm", "tall"]
    assert found["tall"] == {"tall", "Tall"}
    assert attributes(folders["stereotypes"], "cs") == {"hot": {"hot", "Hot"}}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"templates": {"people": ["why are they so"]}}, "must have {group} once"),
        ({"released": "Why are <mask> so"}, "must have <mask> twice"),
    ],
)
def test_frames_rejects(wrong, told):
    with pytest.raises(ValidationError, match=told):
        Frames(**FRAMES.model_dump() | wrong)
