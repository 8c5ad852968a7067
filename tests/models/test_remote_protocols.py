"""vLLM and Ollama, by stand-ins that answer as their sources do: what works, what is refused."""

import pytest
from models.far import PROMPTS, at, endpoint
from models.protocols import nats, ollama, served, vllm
from models.served import TEMPLATE, Model
from models.test_remote import PAIRS, exactly, same
from models.tiny import save
from models.tiny_causal import llama, llama_tokenizer

from plumbline.builders.core.errors import UserError
from plumbline.probes.models import remote
from plumbline.probes.models.remote import identify
from plumbline.probes.models.scorer import Sampling

GREEDY = Sampling(tokens=5, temperature=0.0)
SPLIT = [  # characters of several tokens on both sides of the border
    ("he is", " 🚀 ."),
    ("he is 🚀", "🚀 today"),
    ("добрый", " день"),
    ("доб", "рый"),
    ("日本", "語"),
    ("", "語 is kind"),
]


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    monkeypatch.setattr(remote, "PAUSE_S", 0.01)


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    """A tiny Llama with SentencePiece's tokens, as Llama 2 and Mistral had them."""
    tokenizer = llama_tokenizer(pad_token="<unk>")
    tokenizer.chat_template = TEMPLATE
    return Model(save(tmp_path_factory.mktemp("pieces"), llama(tokenizer), tokenizer))


def test_vllm_tells_the_models_own_scores_also_of_characters_in_several_tokens(model):
    with served(vllm, model, "tiny") as (address, asked):
        scores = list(at(address).logprobs([*PAIRS, *SPLIT]))
    same(scores, [exactly(model, *pair) for pair in [*PAIRS, *SPLIT]])
    assert all(one["echo"] and one["logprobs"] == 1 for one in asked)
    assert not any("top_k" in one for one in asked)


def test_vllm_tells_scores_of_a_sentencepiece_model(pieces):
    pairs = [("Ada is", " kind, and Cleo was tall."), ("Bo Falk", " is calm."), ("", "Ada is kind")]
    with served(vllm, pieces, "tiny") as (address, _):
        scores = list(at(address).logprobs(pairs))
    for (prefix, text), score in zip(pairs, scores, strict=True):
        ids = pieces.tokenizer(prefix + text).input_ids
        start, rows = len(pieces.tokenizer(prefix).input_ids), nats(pieces, ids)
        true = sum(rows[n - 1, ids[n]].item() for n in range(start, len(ids)))
        assert score.logprob_nats == pytest.approx(true, abs=1e-6)
        assert score.tokens == len(ids) - start


@pytest.mark.parametrize("kind", [vllm, ollama])
def test_both_write_in_a_chat_what_the_model_writes(model, kind):
    with served(kind, model, "tiny") as (address, asked):
        texts = list(at(address, api="chat").generate(PROMPTS, range(6), GREEDY))
    for prompt, text in zip(PROMPTS, texts, strict=True):
        said = model.tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], tokenize=False
        )
        _, drawn = model.write(said, 5, 0, 0)
        assert text.text == model.tokenizer.decode(drawn, skip_special_tokens=True)
        assert text.tokens == len(drawn)
    assert {one["seed"] for one in asked} == set(range(6))


def test_a_text_that_vllm_has_no_room_for_is_refused_and_never_cut(model):
    with (
        served(vllm, model, "tiny") as (address, _),
        pytest.raises(UserError, match=r"row 1 .* HTTP 400.*maximum context length is 64 tokens"),
    ):
        list(at(address).logprobs([PAIRS[0], ("he is " * 60, "kind")]))


def test_what_ollama_leaves_out_or_adds_is_refused_and_says_what_to_do(model):
    """It scores no text, puts its template around completions, and ignores top_k."""
    with served(ollama, model, "tiny") as (address, _):
        far, chat = at(address), at(address, api="chat")
        for asked, told in (
            (far.logprobs(PAIRS[:1]), "tells no log-probabilities of a given t"),
            (far.generate(PROMPTS, range(6), GREEDY), r".* chat template .*endpoint\.api: chat"),
            (
                chat.generate(PROMPTS, range(6), GREEDY._replace(top_k=5)),
                "ignores top_k .*PARAMETER top_k",
            ),
        ):
            with pytest.raises(UserError, match=rf"row 0 .*: Ollama {told}"):
                list(asked)


@pytest.mark.parametrize("name", ["tiny", "tiny:latest"])
def test_ollama_knows_its_models_with_their_tag_and_without(model, name):
    with served(ollama, model, "tiny") as (address, _):
        known = identify(endpoint(address, model=name))
    assert known == {"id": "tiny:latest", "created": 1_700_000_000, "owned_by": "library"}


def test_vllm_names_its_model_and_nothing_of_the_moment(model):
    with served(vllm, model, "tiny") as (address, _):
        known = identify(endpoint(address))
    assert known == {"id": "tiny", "owned_by": "vllm", "parent": None, "max_model_len": 64}


@pytest.mark.parametrize("kind", [vllm, ollama])
def test_a_model_that_is_not_served_is_told(model, kind):
    with served(kind, model, "tiny") as (address, _):
        with pytest.raises(UserError, match=r"has no 'other'; it lists: tiny"):
            identify(endpoint(address, model="other"))
        with pytest.raises(UserError, match=r"HTTP 404, check .*endpoint\.model"):
            list(at(address, model="other", api="chat").generate(PROMPTS, range(6), GREEDY))
