import math
import random
from functools import partial
from itertools import product
from pathlib import Path

import pytest
import torch
from models import tiny
from models.tiny import in_any_company, own_products_agree, save, wordpiece
from models.tiny_causal import (
    CAUSAL,
    CLOSING,
    LETTERS,
    NAMES,
    SENTENCES,
    WORDS,
    gpt1,
    gpt1_tokenizer,
    gpt2,
    gpt2_tokenizer,
    letters_tokenizer,
    llama,
    llama_tokenizer,
)
from transformers import AutoModelForCausalLM

from plumbline.builders.core.errors import UserError
from plumbline.probes.models import batching, forward
from plumbline.probes.models.causal import Causal
from plumbline.probes.models.kernels import packed_linear, prefix_tree
from plumbline.probes.models.scorer import Sampling

STORIES = Path(__file__).parents[3] / "shared" / "data" / "models" / "stories260k"
NARROW = ("gpt_neo", "mamba")  # compute some of it in float32, whatever they are loaded in
# beginnings that many texts have, longer than the windows of five; and some that nobody shares
PAIRS = [
    (f"{name} is {word}, and {name} was {word}, and {other}", f" is {last}, and {last}.")
    for name in NAMES[:3]
    for word in WORDS[:2]
    for other in NAMES[3:]
    for last in WORDS[:3]
]
PAIRS += [("Cleo was", " tall."), ("Cleo", " was tall."), ("Élan Žižek is", " kind")]
PAIRS += [(f"{name} is", f" {word}") for name in NAMES for word in WORDS]


loaded = partial(tiny.loaded, Causal)
fresh = partial(tiny.fresh, Causal)
parts = partial(tiny.opened, AutoModelForCausalLM)
KINDS = tiny.quickly(CAUSAL, "gpt2", "llama", "gemma3", "gpt1", "mamba")


def summed(where, ids, start, dtype="float64"):
    """Compute the full forward of one text alone; sum over its tokens from ``start`` on."""
    _, model = parts(where, dtype)
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
    scores = torch.log_softmax(logits.double(), 1)
    return sum(scores[i - 1, ids[i]].item() for i in range(start, len(ids)))


def by_hand(where, pair, dtype="float64"):
    """Return the log-probability of a continuation, and the number of its tokens."""
    tokenizer, _ = parts(where, dtype)
    ids, head = tokenizer("".join(pair))["input_ids"], tokenizer(pair[0])["input_ids"]
    assert ids[: len(head)] == head
    return summed(where, ids, len(head), dtype), len(ids) - len(head)


def values(scores):
    return [score.logprob_nats for score in scores]


@pytest.mark.parametrize("dtype", tiny.quickly(["float64", "float32"], "float64"))
@pytest.mark.parametrize("kind", CAUSAL)
def test_logprobs_are_those_of_a_plain_forward_of_each_text_alone(folder, kind, dtype):
    apart = 2e-5 if kind in NARROW or dtype == "float32" else 1e-6
    scores = list(loaded(folder(kind), dtype).logprobs(PAIRS))
    assert [score.text for score in scores] == ["".join(pair) for pair in PAIRS]
    for pair, score in zip(PAIRS, scores, strict=True):
        true, tokens = by_hand(folder(kind), pair, dtype)
        assert abs(score.logprob_nats - true) < apart
        assert score.tokens == tokens
    assert len(set(values(scores))) == len(set(PAIRS))  # so that a mix-up would be seen


@pytest.mark.parametrize("kind", KINDS)
def test_float32_is_the_same_to_the_last_bit_whichever_texts_are_asked_together(
    folder, kind, monkeypatch
):
    monkeypatch.setattr(forward, "DECIMALS", 14)
    pairs = [*PAIRS, *((f"{one} {two}", " is kind") for one in SENTENCES for two in SENTENCES[:3])]
    pairs += [(f"{text} {text} {name}", " was") for text in SENTENCES[:9] for name in NAMES]
    scorer = loaded(folder(kind), "float32")
    if scorer.fewest > packed_linear.PAIR and not own_products_agree():
        pytest.skip("not all products are packed, and those of torch depend on their rows here")
    whole = list(scorer.logprobs(pairs))
    print("seed 11")
    draw = random.Random(11)
    for size in (1, 2, 9, 40):
        rows = draw.sample(range(len(pairs)), size)
        assert list(scorer.logprobs([pairs[row] for row in rows])) == [whole[row] for row in rows]


def test_a_model_that_does_not_leave_its_attention_to_others_shares_nothing(folder, monkeypatch):
    true = values(loaded(folder("llama")).logprobs(PAIRS))
    monkeypatch.setattr(prefix_tree, "_pick", _turned)
    scorer = fresh(folder("llama"))
    assert not scorer.shares
    assert values(scorer.logprobs(PAIRS)) == pytest.approx(true, abs=1.01e-6)


def _turned(states, nodes):
    """Pick other nodes than those asked for."""
    chosen = states.index_select(0, nodes.flip(1).flatten())
    return chosen.view(*nodes.shape, *states.shape[1:]).transpose(1, 2)


@pytest.mark.parametrize("kind", ["llama", "gpt1"])
def test_float32_is_the_same_to_the_last_bit_for_any_budget_and_number_of_cores(
    folder, kind, monkeypatch
):
    scorer = loaded(folder(kind), "float32")
    in_any_company(monkeypatch, scorer, lambda pairs: list(scorer.logprobs(pairs)), PAIRS)


def test_blocks_are_taken_one_after_the_other(folder, monkeypatch):
    scorer = loaded(folder("gpt2"))
    whole = list(scorer.logprobs(PAIRS))
    monkeypatch.setattr(batching, "BLOCK", 7)
    taken = []

    def source():
        for pair in PAIRS:
            taken.append(pair)
            yield pair

    answers = scorer.logprobs(source())
    next(answers)
    assert len(taken) == 7
    assert [next(answers), *answers] == whole[1:]
    assert taken == PAIRS


@pytest.mark.parametrize(
    ("kind", "prefix", "rest"),
    [
        ("gpt2", "Ada is ", "kind"),  # the space belongs to the next piece
        ("llama", "Ada is ", "kind"),
        ("gpt2", "Ada is ki", "nd"),
        ("llama", "Bo Fal", "k is kind"),
        ("gpt1", "Ada is ki", "nd"),
    ],
)
def test_a_prefix_that_ends_within_a_token_is_refused_and_both_are_named(
    folder, kind, prefix, rest
):
    scorer = loaded(folder(kind))
    with pytest.raises(UserError, match="put the space at the beginning") as caught:
        list(scorer.logprobs([*PAIRS, (prefix, rest)]))
    assert f"models.tiny: {prefix!r} is not" in str(caught.value)
    assert repr(prefix + rest) in str(caught.value)


@pytest.mark.parametrize(("kind", "opening"), [("llama", "<s>"), ("gpt2", CLOSING)])
def test_after_an_empty_prefix_stands_the_token_that_begins_texts(folder, kind, opening):
    where = folder(kind)
    tokenizer, _ = parts(where)
    texts = ["Ada is kind", "Ada", " tall", "Élan Žižek was calm, and kind."]
    for text, score in zip(texts, loaded(where).logprobs([("", t) for t in texts]), strict=True):
        own = tokenizer(text, add_special_tokens=False)["input_ids"]
        ids = [tokenizer.convert_tokens_to_ids(opening), *own]
        assert score.text == text
        assert score.tokens == len(own)
        assert score.logprob_nats == pytest.approx(summed(where, ids, 1), abs=1e-6)


def test_a_prefix_of_which_the_tokenizer_keeps_nothing_is_an_empty_one(tmp_path):
    tokenizer = gpt1_tokenizer(bos_token="<s>")  # drops spaces
    scorer = loaded(save(tmp_path, gpt1(tokenizer), tokenizer))
    space, empty = scorer.logprobs([(" ", "Ada is"), ("", "Ada is")])
    assert (space.logprob_nats, space.tokens) == (empty.logprob_nats, 2)
    ids = tokenizer("<s> Ada is")["input_ids"]
    assert empty.logprob_nats == pytest.approx(summed(tmp_path, ids, 1), abs=1e-6)


def test_without_a_token_that_begins_texts_an_empty_prefix_is_refused(folder, tmp_path):
    # a number that the config has from GPT-2, and that this vocabulary lacks
    model = gpt2(gpt2_tokenizer())
    model.config.bos_token_id = 50256
    other = loaded(save(tmp_path, model, gpt2_tokenizer(bos_token=None)))
    scorer = loaded(folder("gpt1"))
    for asked in (
        scorer.logprobs([("", "Ada is kind")]),
        scorer.logprobs([(" ", "Ada is kind")]),  # of which its tokenizer keeps nothing
        scorer.generate([""], [0]),
        other.logprobs([("", "Ada is kind")]),
    ):
        with pytest.raises(UserError, match=r"models\.tiny: has no beginning-of-text token"):
            list(asked)


def test_a_tokenizer_that_begins_texts_in_its_own_way_is_followed(tmp_path):
    """Chinese GPT-2s have BERT's tokenizer: [CLS] begins every text."""
    tokenizer = wordpiece(SENTENCES)
    where = save(tmp_path, gpt2(tokenizer), tokenizer)
    pairs = [("", "Ada is kind"), ("Ada is", " kind"), (" ", "Ada is kind"), ("Ada", " quux Bo")]
    scores = list(loaded(where).logprobs(pairs))
    for (prefix, rest), score in zip(pairs, scores, strict=True):
        ids = tokenizer(prefix + rest)["input_ids"][:-1]
        assert tokenizer.convert_ids_to_tokens(ids[0]) == "[CLS]"
        start = len(tokenizer(prefix)["input_ids"]) - 1
        assert score.logprob_nats == pytest.approx(summed(where, ids, start), abs=1e-6)
        assert score.tokens == len(ids) - start
    assert scores[0].logprob_nats == scores[2].logprob_nats  # the tokenizer drops the space
    assert [score.unknown for score in scores] == [0, 0, 0, 1]  # quux


def test_the_probabilities_of_all_continuations_add_up_to_one(tmp_path):
    tokenizer = letters_tokenizer()
    scorer = loaded(save(tmp_path, gpt2(tokenizer), tokenizer))
    every = (*LETTERS, CLOSING)
    for prefix in ("", "x", "zy", "xyzzyxyz"):
        for length in (1, 2, 3):
            rests = ["".join(letters) for letters in product(every, repeat=length)]
            scores = list(scorer.logprobs([(prefix, rest) for rest in rests]))
            assert {score.tokens for score in scores} == {length}
            assert len(scores) == 4**length
            assert sum(math.exp(v) for v in values(scores)) == pytest.approx(1, abs=1e-6)
            assert len(set(values(scores))) > 3**length


def test_a_text_without_room_or_without_tokens_is_refused_and_named(folder):
    scorer = loaded(folder("llama"))
    fits = "Ada" + " is" * 61  # and the opening token
    (score,) = scorer.logprobs([(fits, " kind")])
    assert score.tokens == 1
    with pytest.raises(UserError, match="has 65 tokens, the model takes 64") as caught:
        list(scorer.logprobs([PAIRS[0], (fits, " kind."), PAIRS[1]]))
    assert fits + " kind." in str(caught.value)
    with pytest.raises(UserError, match=r"models\.tiny: no token to score in '' after 'Ada is'"):
        list(scorer.logprobs([("Ada is", "")]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weights_that_are_not_numbers_are_told_where_they_are_met(tmp_path, dtype):
    tokenizer = llama_tokenizer()
    model = llama(tokenizer)
    with torch.no_grad():
        model.model.embed_tokens.weight[tokenizer.convert_tokens_to_ids("▁brave")] = math.nan
    scorer = loaded(save(tmp_path, model, tokenizer), dtype)
    assert len(list(scorer.logprobs([("Ada is", " kind"), ("Ada is", " tall, and")]))) == 2
    said = rf"models\.tiny: answers are not finite in {dtype} \(batch of \d+\)"
    written = scorer.generate(["Ada is", "Bo is brave"], [1, 2], Sampling(tokens=9))
    for asked in (scorer.logprobs([("Ada is", " kind"), ("Ada is", " brave, and")]), written):
        with pytest.raises(UserError, match=said):
            list(asked)


def test_a_context_stands_before_every_prefix(folder):
    where = folder("llama")
    said = loaded(where, context="Cleo was calm.").logprobs([("Ada is", " kind"), ("", " Bo")])
    asked = [("Cleo was calm. Ada is", " kind"), ("Cleo was calm.", " Bo")]
    assert list(said) == list(loaded(where).logprobs(asked))
    (text,) = loaded(where, context="Cleo was calm.").generate(["Ada"], [5], Sampling(tokens=9))
    assert text == next(loaded(where).generate(["Cleo was calm. Ada"], [5], Sampling(tokens=9)))


@pytest.mark.skipif(
    not packed_linear.works(torch.float32), reason="torch has no packed products here"
)
@pytest.mark.parametrize(
    ("kind", "fewest"),
    [
        ("gpt2", packed_linear.PAIR),
        ("llama", packed_linear.PAIR),
        ("gemma3", packed_linear.PAIR),
        ("mamba", packed_linear.FEWEST),  # reads the weights of a layer itself: that one is left
    ],
)
def test_packed_weights_answer_as_plain_ones(folder, kind, fewest, monkeypatch):
    scorer = loaded(folder(kind), "float32")
    assert scorer.fewest == fewest
    laid_out = values(scorer.logprobs(PAIRS))
    monkeypatch.setattr(packed_linear, "works", lambda _: False)
    scorer = fresh(folder(kind), "float32")
    assert scorer.fewest == packed_linear.FEWEST
    for one, other in zip(values(scorer.logprobs(PAIRS)), laid_out, strict=True):
        assert one == pytest.approx(other, abs=2e-5)


@pytest.mark.shared
@pytest.mark.skipif(not STORIES.is_dir(), reason=f"no {STORIES}")
def test_a_real_model_finds_sense_likelier_than_nonsense():
    beginning = "Once upon a time, there was a little girl named Lily."
    sense = ["She", "loved", "to", "play", "with", "her", "toys"]
    scorer = loaded(STORIES, "float32")
    mixed = [sense[3:] + sense[:3], sense[::-1], [*sense[1:], sense[0]]]
    true, *others = values(
        scorer.logprobs([(beginning, " " + " ".join(words)) for words in (sense, *mixed)])
    )
    assert true > max(others) + 10
    she, he = values(scorer.logprobs([(beginning, " She was"), (beginning, " He was")]))
    assert she > he + 1
