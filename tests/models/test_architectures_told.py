"""XLM, XLNet, BERTweet, BART and mBART: each must be told something that BERT need not be."""

import json

import pytest
from models import tiny_special
from models.special_by_hand import (
    TEXTS,
    agreed,
    by_hand,
    filled,
    loaded,
    numbered,
    plain,
    spelt,
    written,
)
from models.tiny_special import LANGUAGES, WORDS

from plumbline.builders.core.errors import UserError
from plumbline.probes.models import masked


def test_xlm_language(special):
    folder, answers = special("xlm"), {}
    ids = numbered(folder, spelt("xlm", TEXTS[0]))
    for language in LANGUAGES:
        (fill,) = filled(loaded(folder), [written(TEXTS[0])], WORDS, language=language)
        true = by_hand("xlm", folder, "float64", ids, 2, language=language)
        answers[language] = agreed(fill, "xlm", folder, true)
    assert abs(answers["en"]["kind"] - answers["fr"]["kind"]) > 0.01
    assert abs(answers["en"]["kind"] - answers["de"]["kind"]) > 0.01


@pytest.mark.parametrize("language", ["", "sw"])
def test_xlm_unknown_language(special, language):
    scorer = loaded(special("xlm"))
    told = rf"models\.tiny: knows no language '{language}', only de, en, fr; set languages"
    with pytest.raises(UserError, match=told):
        filled(scorer, ["the <mask> Ada"], WORDS, language=language)
    for method in masked.METHODS:
        with pytest.raises(UserError, match=told):
            list(scorer.pseudo_logprobs(["Ada the kind"], method, language=language))


def test_bertweet_normalises_users_links_and_emoji(special):
    folder = special("bertweet")
    said = json.loads((folder / "tokenizer_config.json").read_text())
    assert said["normalization"] is False
    prompt = "@ada the <mask> https://t.co/abc 😂 Bo"
    tokens = ["<s>", "@USER", "the", "<mask>", "HTTPURL", ":face_with_tears_of_joy:", "Bo", "</s>"]
    true = by_hand("bertweet", folder, "float64", numbered(folder, tokens), 3)
    (fill,) = filled(loaded(folder), [prompt], WORDS)
    assert fill.prompt == prompt
    assert fill.unknown == 0
    agreed(fill, "bertweet", folder, true)


def test_bertweet_merges_without_counts(special, tmp_path):
    # as transformers 5.23 saves them, though it reads them with their counts
    tiny_special.bertweet(tiny_special.bertweet_files(tmp_path, counts=False)).save_pretrained(
        tmp_path
    )
    with pytest.raises(UserError, match=r"bpe\.codes lacks the counts .* original model"):
        loaded(tmp_path)


def test_xlnet_context(special):
    folder = special("xlnet")
    before = (*TEXTS[3][:2], *[("brave",), ("Cleo",)] * 40)
    alone = loaded(folder)
    primed = loaded(folder, context=written(before))
    (short,) = filled(alone, [written(TEXTS[0])], WORDS)
    (fill,) = filled(primed, [written(TEXTS[0])], WORDS)
    assert fill.prompt == f"{written(before)} {short.prompt}"
    tokens = spelt("xlnet", [*before, *TEXTS[0]])
    ids, place = numbered(folder, tokens), tokens.index("<mask>")
    true = by_hand("xlnet", folder, "float64", ids, place)
    said = agreed(fill, "xlnet", folder, true)
    for word, unprimed in zip(short.words, short.logprobs_nats, strict=True):
        assert abs(said[word] - unprimed) > 0.01


def test_mbart_language(special):
    folder, answers = special("mbart"), {}
    scorer = loaded(folder)
    for language, code in [("de", "de_DE"), ("en", "en_XX"), ("de", "de_DE")]:
        tokens = spelt("mbart", TEXTS[0], code)
        ids, place = numbered(folder, tokens), tokens.index("<mask>")
        true = by_hand("mbart", folder, "float64", ids, place)
        (fill,) = filled(scorer, [written(TEXTS[0])], WORDS, language=language)
        answers[language] = agreed(fill, "mbart", folder, true)
    assert abs(answers["en"]["kind"] - answers["de"]["kind"]) > 0.01
    with pytest.raises(UserError, match=r"models\.tiny: knows no language 'sw', only .*en_XX"):
        filled(scorer, [written(TEXTS[0])], WORDS, language="sw")
    with pytest.raises(UserError, match=r"models\.tiny: needs the language"):
        filled(scorer, [written(TEXTS[0])], WORDS)


def test_bart_folder_without_tokenizer_json(special, tmp_path):
    # vocabulary and merges alone: transformers 5 makes a mask of them that leaves the space
    plain("bart", special("bart"), "float64").save_pretrained(tmp_path)
    model = json.loads((special("bart") / "tokenizer.json").read_text())["model"]
    (tmp_path / "vocab.json").write_text(json.dumps(model["vocab"]))
    lines = ["#version: 0.2", *(" ".join(pair) for pair in model["merges"])]
    (tmp_path / "merges.txt").write_text("\n".join(lines) + "\n")
    prompts = [written(words) for words in TEXTS]
    new, old = (filled(loaded(x), prompts, WORDS) for x in (special("bart"), tmp_path))
    assert new == old
