"""XLM, XLNet, BERTweet, BART and mBART: each must be told something that BERT need not be."""

import json
import shutil
import sys

import pytest
from models import tiny_special
from models.special_by_hand import (
    MASKS,
    SENTENCES,
    SPOKEN,
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
from transformers import AutoTokenizer

from plumbline.builders.core.errors import UserError
from plumbline.probes.models import masked
from plumbline.probes.models.seq2seq import Seq2Seq


def test_xlm_is_told_the_language(special):
    folder, answers = special("xlm"), {}
    ids = numbered(folder, spelt("xlm", TEXTS[0]))
    for language in LANGUAGES:
        (fill,) = filled(loaded(folder), [written(TEXTS[0])], WORDS, language=language)
        true = by_hand("xlm", folder, "float64", ids, 2, language=language)
        answers[language] = agreed(fill, "xlm", folder, true)
    assert abs(answers["en"]["kind"] - answers["fr"]["kind"]) > 0.01
    assert abs(answers["en"]["kind"] - answers["de"]["kind"]) > 0.01


@pytest.mark.parametrize("language", ["", "sw"])
def test_xlm_takes_no_language_that_it_was_not_trained_on(special, language):
    scorer = loaded(special("xlm"))
    told = rf"models\.tiny: knows no language '{language}', only de, en, fr; set languages"
    with pytest.raises(UserError, match=told):
        filled(scorer, ["the <mask> Ada"], WORDS, language=language)
    for method in masked.METHODS:
        with pytest.raises(UserError, match=told):
            list(scorer.pseudo_logprobs(["Ada the kind"], method, language=language))


@pytest.mark.parametrize("known", [{"en": 0}, LANGUAGES])
def test_xlm_without_language_embeddings_needs_no_language(tmp_path, known):
    tokenizer = tiny_special.xlm_tokenizer(tmp_path, languages=known)
    tokenizer.save_pretrained(tmp_path)
    model = tiny_special.xlm(tokenizer, languages=known, embedded=False)
    model.save_pretrained(tmp_path)
    ids = numbered(tmp_path, spelt("xlm", TEXTS[0]))
    true = by_hand("xlm", tmp_path, "float64", ids, 2)
    for language in ("", "en"):
        (fill,) = filled(loaded(tmp_path), [written(TEXTS[0])], WORDS, language=language)
        agreed(fill, "xlm", tmp_path, true)


def test_xlm_takes_each_language_apart_by_its_own_rules(special):
    folder = special("xlm")
    expected = {"fr": ["l'</w>", "ami</w>"], "en": ["l</w>", "'ami</w>"]}
    for language in ("fr", "en", "fr"):
        tokens = ["<s>", "<special1>", *expected[language], "Bo</w>", "</s>"]
        ids = numbered(folder, tokens)
        true = by_hand("xlm", folder, "float64", ids, 1, language=language)
        (fill,) = filled(loaded(folder), ["<mask> l'ami Bo"], WORDS, language=language)
        agreed(fill, "xlm", folder, true)


def test_a_language_whose_words_need_another_package_is_told(special, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "Mykytea", None)
    known = {"en": 0, "ja": 1}
    tokenizer = tiny_special.xlm_tokenizer(tmp_path, languages=known)
    tokenizer.save_pretrained(tmp_path)
    tiny_special.xlm(tokenizer, languages=known).save_pretrained(tmp_path)
    scorer = loaded(tmp_path)
    with pytest.raises(UserError, match=r"cannot find the words of 'ja' .*Mykytea.*; install"):
        filled(scorer, ["the <mask> Ada"], WORDS, language="ja")


def test_xlm_that_writes_small_letters_lacks_what_it_would_change(tmp_path):
    tokenizer = tiny_special.xlm_tokenizer(tmp_path, lowercase=True)
    tokenizer.save_pretrained(tmp_path)
    tiny_special.xlm(tokenizer).save_pretrained(tmp_path)
    scorer = loaded(tmp_path)
    found = scorer.vocabulary(["kind", "Calm", "dùll", "brave"], "en")
    assert list(found.ids) == ["kind", "brave"]
    assert found.missing == ("Calm", "dùll")
    (fill,) = filled(scorer, ["the <mask> Bo"], ["kind", "Calm", "dùll"], multi=True, language="en")
    assert fill.words == ("kind",)


@pytest.mark.parametrize("name", ["xlm", "bertweet"])
def test_the_beginning_of_a_longer_word_is_no_candidate(special, name):
    known = AutoTokenizer.from_pretrained(special(name)).get_vocab()
    beginning, whole = {"xlm": ("un", "kind</w>"), "bertweet": ("un@@", "kind")}[name]
    assert beginning in known
    found = loaded(special(name)).vocabulary(["kind", "un", "kindly"], SPOKEN[name])
    assert dict(found.ids) == {"kind": known[whole]}
    assert found.missing == ("un", "kindly")


@pytest.mark.parametrize(("name", "text"), [("xlm", "kindß Bo"), ("bertweet", "ßx Bo")])
def test_unknown_pieces_stay_in_their_words(special, name, text):
    # in XLM the unknown one ends its word, in BERTweet it begins it
    pieces = {
        "xlm": ["<s>", "kind", "<unk>", "Bo</w>", "</s>"],
        "bertweet": ["<s>", "<unk>", "x", "Bo", "</s>"],
    }
    ids = numbered(special(name), pieces[name])
    (blank,) = numbered(special(name), [MASKS[name]])
    total = 0.0
    for place, unseen in [(1, [1, 2]), (2, [2]), (3, [3])]:
        row = [blank if i in unseen else piece for i, piece in enumerate(ids)]
        total += by_hand(name, special(name), "float64", row, place)[ids[place]]
    scorer = loaded(special(name))
    (score,) = scorer.pseudo_logprobs([text], "within_word_l2r", language=SPOKEN[name])
    assert (score.tokens, score.unknown) == (3, 1)
    assert abs(score.logprob_nats - total) < 2e-6


def test_bertweet_reads_users_links_and_emoji_as_it_was_trained_to(special):
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


def test_merges_of_bertweet_that_lost_their_counts_are_refused(special, tmp_path):
    # as transformers 5.23 saves them, though it reads them with their counts
    tiny_special.bertweet(tiny_special.bertweet_files(tmp_path, counts=False)).save_pretrained(
        tmp_path
    )
    with pytest.raises(UserError, match=r"bpe\.codes lacks the counts .* original model"):
        loaded(tmp_path)


def test_a_context_before_xlnet_s_prompts_counts_and_is_kept(special):
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
    (score,) = primed.pseudo_logprobs([written(SENTENCES[0])])
    assert score.text == f"{written(before)} {written(SENTENCES[0])}"
    assert score.tokens == 4  # those of the sentence, the context is not scored
    ids = numbered(folder, spelt("xlnet", [*before, *SENTENCES[0]]))
    places = range(len(before), len(before) + 4)
    total = sum(by_hand("xlnet", folder, "float64", ids, i)[ids[i]] for i in places)
    assert abs(score.logprob_nats - total) < 2e-6


@pytest.mark.parametrize("method", ["aul", "aula"])
def test_xlnet_cannot_read_a_token_that_it_predicts(special, method):
    told = rf"models\.tiny: {method} reads each token .*; use original or within_word_l2r$"
    with pytest.raises(UserError, match=told):
        list(loaded(special("xlnet")).pseudo_logprobs(["Ada the kind"], method))


def test_mbart_is_told_the_language_of_its_text(special):
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


def test_no_lone_space_stands_before_the_mask_in_bart_s_old_folders(special, tmp_path):
    # vocabulary and merges alone: transformers 5 makes a mask of them that leaves the space
    plain("bart", special("bart"), "float64").save_pretrained(tmp_path)
    model = json.loads((special("bart") / "tokenizer.json").read_text())["model"]
    (tmp_path / "vocab.json").write_text(json.dumps(model["vocab"]))
    lines = ["#version: 0.2", *(" ".join(pair) for pair in model["merges"])]
    (tmp_path / "merges.txt").write_text("\n".join(lines) + "\n")
    prompts = [written(words) for words in TEXTS]
    new, old = (filled(loaded(x), prompts, WORDS) for x in (special("bart"), tmp_path))
    assert new == old


def test_mbart_as_an_encoder_decoder_never_guesses_the_language(special, tmp_path):
    folder = tmp_path / "mbart"
    shutil.copytree(special("mbart"), folder)
    config = json.loads((folder / "config.json").read_text())
    start = AutoTokenizer.from_pretrained(folder).convert_tokens_to_ids("en_XX")
    (folder / "config.json").write_text(json.dumps(config | {"decoder_start_token_id": start}))
    scorer = Seq2Seq(folder, "mbart", "r", dtype="float64")
    text = written(TEXTS[0]).replace("<mask>", WORDS[0])
    pair = [(text, WORDS[1])]
    for asked in (scorer.logprobs(pair), scorer.generate([text], [1])):
        with pytest.raises(UserError, match=r"models\.mbart: needs the language"):
            list(asked)
    first = list(scorer.logprobs(pair, language="en"))
    other = list(scorer.logprobs(pair, language="de"))
    assert first != other
    assert list(scorer.logprobs(pair, language="en")) == first  # whatever was asked before
