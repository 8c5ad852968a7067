"""XLM, XLNet, BERTweet, BART and mBART: what holds of all of them, against plain forwards."""

import math

import pytest
from models.special_by_hand import (
    BOTH_SIDES,
    MASKS,
    NAMES,
    SENTENCES,
    SPOKEN,
    TEXTS,
    agreed,
    by_hand,
    filled,
    loaded,
    numbered,
    pieces,
    spelt,
    written,
)
from models.tiny_special import SPLIT, WORDS

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.scorer import METHODS


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "float64") for name in NAMES), ("xlnet", "float32")]
)
def test_fill_is_a_plain_forward(special, name, dtype):
    folder, language = special(name), SPOKEN[name]
    prompts = [written(words) for words in TEXTS]
    fills = filled(loaded(folder, dtype), prompts, WORDS, language=language)
    for words, fill in zip(TEXTS, fills, strict=True):
        assert fill.prompt == written(words).replace("<mask>", MASKS[name])
        assert (fill.unknown, set(fill.pieces)) == (0, {1})
        tokens = spelt(name, words)
        ids = numbered(folder, tokens)
        true = by_hand(name, folder, dtype, ids, tokens.index(MASKS[name]))
        assert sum(math.exp(x) for x in true) == pytest.approx(1)
        agreed(fill, name, folder, true, dtype)


@pytest.mark.parametrize("name", NAMES)
def test_fill_words_of_several_pieces(special, name):
    folder, language = special(name), SPOKEN[name]
    scorer, mask = loaded(folder), MASKS[name]
    prompts = [written(words) for words in TEXTS]
    single = filled(scorer, prompts, [*WORDS, *SPLIT], language=language)
    several = filled(scorer, prompts, [*WORDS, *SPLIT], multi=True, language=language)
    (blank,) = numbered(folder, [mask])
    for words, one, all_ in zip(TEXTS, single, several, strict=True):
        said = dict(zip(all_.words, all_.logprobs_nats, strict=True))
        assert sorted(one.words) == sorted(WORDS)
        assert [said[word] for word in one.words] == list(one.logprobs_nats)
        counts = dict(zip(all_.words, all_.pieces, strict=True))
        assert counts == {**dict.fromkeys(WORDS, 1), "kindly": 2, "unkindly": 3}
        assert list(all_.logprobs_nats) == sorted(all_.logprobs_nats, reverse=True)
        tokens = spelt(name, words)
        ids, place = numbered(folder, tokens), tokens.index(mask)
        for word, parts in SPLIT.items():
            tail, total = pieces(name, folder, parts), 0.0
            for n, piece in enumerate(tail):
                blanks = [blank] * (len(tail) - n)
                row = [*ids[:place], *tail[:n], *blanks, *ids[place + 1 :]]
                unseen = range(place + n, place + len(tail))
                total += by_hand(name, folder, "float64", row, place + n, hidden=unseen)[piece]
            assert abs(said[word] - total) < 2e-6  # of up to three, each rounded to six digits


@pytest.mark.parametrize("method", ["original", "within_word_l2r"])
@pytest.mark.parametrize("name", BOTH_SIDES)
def test_pseudo_logprobs_hide_each_token(special, name, method):
    folder, language = special(name), SPOKEN[name]
    (blank,) = numbered(folder, [MASKS[name]])
    texts = [written(words) for words in SENTENCES]
    found = list(loaded(folder).pseudo_logprobs(texts, method, language=language))
    assert [score.text for score in found] == texts
    for words, score in zip(SENTENCES, found, strict=True):
        ids = numbered(folder, spelt(name, words))
        start, total = (0 if name == "xlnet" else 1), 0.0
        for word in words:
            for n in range(len(word)):
                last = len(word) if method == "within_word_l2r" else n + 1
                unseen = list(range(start + n, start + last))
                row = [blank if i in unseen else piece for i, piece in enumerate(ids)]
                true = by_hand(name, folder, "float64", row, start + n, hidden=unseen)
                total += true[ids[start + n]]
            start += len(word)
        assert score.tokens == sum(len(word) for word in words)
        assert abs(score.logprob_nats - total) < 2e-6


@pytest.mark.parametrize(("name", "method"), [*(("bart", m) for m in METHODS), ("mbart", "aul")])
def test_pseudo_logprobs_of_a_decoder(special, name, method):
    scorer = loaded(special(name))
    with pytest.raises(UserError, match=r"models\.tiny: M?Bart\w+ has no pseudo-log-likelihood"):
        list(scorer.pseudo_logprobs(["Ada the kind"], method, language="en"))
