"""Tiny models that write or classify: their true classes with random weights, true tokenizers."""

import json

import torch
import transformers as hf
from models.tiny import wordpiece
from tokenizers import Tokenizer, decoders, pre_tokenizers, trainers
from tokenizers import models as pieces
from tokenizers.normalizers import BertNormalizer

NAMES = ("Ada", "Bo Falk", "Cleo", "Dag Ada Berg", "Élan Žižek")
WORDS = ("kind", "brave", "calm", "honest", "tall")
SENTENCES = [f"{name} is {word}, and {name} was {word}." for name in NAMES for word in WORDS]
CLOSING = "<|endoftext|>"
BYTES = [f"<0x{n:02X}>" for n in range(256)]
LETTERS = ("x", "y", "z")


def _merges(tokenizer, special, alphabet=(), **options):
    """Train byte-pair merges on the sentences; return vocabulary and merges."""
    trainer = trainers.BpeTrainer(
        vocab_size=5000,
        special_tokens=list(special),
        initial_alphabet=list(alphabet),
        show_progress=False,
        **options,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def _byte_level(special):
    tokenizer = Tokenizer(pieces.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return _merges(tokenizer, special, sorted(pre_tokenizers.ByteLevel.alphabet()))


def gpt2_tokenizer(**options):
    """Return GPT-2's own tokenizer: spaces belong to pieces, one token opens and closes."""
    vocabulary, merges = _byte_level([CLOSING])
    return hf.GPT2Tokenizer(vocabulary, merges, **{"model_max_length": 64, **options})


def bart_tokenizer(**options):
    """Return BART's and RoBERTa's own tokenizer."""
    vocabulary, merges = _byte_level(["<s>", "<pad>", "</s>", "<unk>"])
    vocabulary["<mask>"] = len(vocabulary)
    return hf.BartTokenizer(vocabulary, merges, **{"model_max_length": 64, **options})


def llama_tokenizer(**options):
    """Return Llama's own tokenizer: a space before every text, unknown letters as bytes."""
    tokenizer = Tokenizer(pieces.BPE(fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Punctuation(), pre_tokenizers.Metaspace(prepend_scheme="first", split=True)]
    )
    vocabulary, merges = _merges(tokenizer, ["<unk>", "<s>", "</s>", *BYTES])
    options = {"model_max_length": 64, "add_bos_token": True, **options}
    return hf.LlamaTokenizer(vocabulary, merges, **options)


def gpt1_tokenizer(**options):
    """Return GPT-1's own tokenizer: small letters only, pieces that close a word are marked."""
    tokenizer = Tokenizer(pieces.BPE(end_of_word_suffix="</w>", unk_token="<unk>"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    vocabulary, merges = _merges(tokenizer, ["<unk>"], end_of_word_suffix="</w>")
    return hf.OpenAIGPTTokenizer(vocabulary, merges, **{"model_max_length": 64, **options})


def t5_tokenizer(**options):
    """Return T5's own tokenizer: words of the sentences and single letters, ten sentinels."""
    words = sorted({f"▁{word.strip('.,')}" for text in SENTENCES for word in text.split()})
    letters = sorted(set("".join(SENTENCES)) - {" "})
    vocabulary = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -3.0)]
    vocabulary += [(word, -4.0) for word in words] + [(letter, -6.0) for letter in letters]
    vocabulary += [(f"<extra_id_{i}>", 0.0) for i in reversed(range(10))]
    return hf.T5Tokenizer(vocabulary, extra_ids=10, **{"model_max_length": 64, **options})


def letters_tokenizer():
    """Return a tokenizer of three letters and an end, so that all texts can be listed."""
    vocabulary = {CLOSING: 0, **{letter: i + 1 for i, letter in enumerate(LETTERS)}}
    tokenizer = Tokenizer(pieces.WordLevel(vocabulary, unk_token=CLOSING))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=CLOSING, eos_token=CLOSING, model_max_length=64
    )


def _spread(model, by=0.3):
    """Set the matrices wide apart, so that answers differ by much."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, by)
    return model


def made(kind, tokenizer, seed, **options):
    """Return a model with random weights."""
    torch.manual_seed(seed)
    return _spread(kind(kind.config_class(vocab_size=len(tokenizer), **options)))


def ends(tokenizer):
    return {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}


SMALL = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": None,
}
GPT = {"n_embd": 32, "n_layer": 2}


def gpt2(tokenizer, *, seed=0, positions=64):
    options = {**GPT, "n_head": 2, "n_positions": positions, **ends(tokenizer)}
    return made(hf.GPT2LMHeadModel, tokenizer, seed, **options)


def llama(tokenizer, *, seed=0):
    return made(hf.LlamaForCausalLM, tokenizer, seed, **SMALL)


def gemma3(tokenizer, *, seed=0, window=5):
    """Return a Gemma 3 whose first layer sees the last few tokens only, the second all."""
    kinds = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": window}
    return made(hf.Gemma3ForCausalLM, tokenizer, seed, **kinds, **SMALL)


def gpt1(tokenizer, *, seed=0):
    """Return a GPT-1, which keeps no states from one token to the next."""
    return made(hf.OpenAIGPTLMHeadModel, tokenizer, seed, **GPT, n_head=4, n_positions=64)


def opt(tokenizer, *, seed=0):
    """Return an OPT, whose head reads from a decoder within its body."""
    options = {"hidden_size": 32, "word_embed_proj_dim": 32, "ffn_dim": 48, "num_hidden_layers": 2}
    options |= {"num_attention_heads": 4, "max_position_embeddings": 64, **ends(tokenizer)}
    return made(hf.OPTForCausalLM, tokenizer, seed, **options)


def mamba(tokenizer, *, seed=0):
    """Return a Mamba, which has no attention; with the tokenizer of GPT-2, nearly its own."""
    options = {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4, **ends(tokenizer)}
    return made(hf.MambaForCausalLM, tokenizer, seed, **options)


def t5(tokenizer, *, seed=0):
    options = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
    return made(hf.T5ForConditionalGeneration, tokenizer, seed, decoder_start_token_id=0, **options)


def bart(tokenizer, *, seed=0, positions=64, **options):
    for side in ("encoder", "decoder"):
        options |= {f"{side}_layers": 2, f"{side}_attention_heads": 4, f"{side}_ffn_dim": 48}
    options |= {"d_model": 32, "max_position_embeddings": positions}
    return made(hf.BartForConditionalGeneration, tokenizer, seed, **options)


def forced_bart(tokenizer):
    """Return a BART of the usual kind: what its decoder writes begins with <s>."""
    model = bart(tokenizer)
    model.generation_config.forced_bos_token_id = 0
    return model


# neither in alphabetical order nor named as anybody would expect
LABELS = ("zest", "LABEL_0", "näher am Tor")
ENCODER = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
ENCODER |= {"intermediate_size": 48}


def _named(problem, labels):
    """Return what a config says of the labels."""
    options = {
        "id2label": dict(enumerate(labels)),
        "label2id": {x: i for i, x in enumerate(labels)},
    }
    return options | ({"problem_type": problem} if problem else {})


def bert_classifier(tokenizer, *, problem=None, labels=LABELS, seed=0, positions=40):
    options = ENCODER | _named(problem, labels) | {"max_position_embeddings": positions}
    return made(hf.BertForSequenceClassification, tokenizer, seed, **options)


def roberta_classifier(tokenizer, *, problem=None, labels=LABELS, seed=0, positions=40):
    """Return a RoBERTa the first two of whose positions belong to the padding."""
    options = ENCODER | _named(problem, labels) | {"max_position_embeddings": positions}
    options |= {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    return made(hf.RobertaForSequenceClassification, tokenizer, seed, **options)


def gpt2_classifier(tokenizer, *, problem=None, labels=LABELS, seed=0, positions=40):
    """Return a GPT-2 that judges by the last token, and knows of no padding."""
    options = {**GPT, "n_head": 2, "n_positions": positions, **_named(problem, labels)}
    return made(hf.GPT2ForSequenceClassification, tokenizer, seed, **options, **ends(tokenizer))


CAUSAL = {  # by kind: the model and its tokenizer
    "gpt2": (gpt2, gpt2_tokenizer),
    "llama": (llama, llama_tokenizer),
    "gemma3": (gemma3, llama_tokenizer),
    "opt": (opt, gpt2_tokenizer),
    "gpt1": (gpt1, gpt1_tokenizer),
    "mamba": (mamba, gpt2_tokenizer),
}
MADE = CAUSAL | {
    "t5": (t5, t5_tokenizer),
    "bart": (bart, bart_tokenizer),
    "forced": (forced_bart, bart_tokenizer),
    "bert": (bert_classifier, lambda: wordpiece(SENTENCES)),
    "roberta": (roberta_classifier, bart_tokenizer),
    "gpt2-labels": (gpt2_classifier, gpt2_tokenizer),
}
