"""Tiny models that write or classify: their true classes with random weights, true tokenizers."""

import json

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers, trainers
from tokenizers import models as pieces
from tokenizers.normalizers import BertNormalizer
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BartTokenizer,
    BertConfig,
    BertForSequenceClassification,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2ForSequenceClassification,
    GPT2LMHeadModel,
    GPT2Tokenizer,
    GPTNeoConfig,
    GPTNeoForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaTokenizer,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    OpenAIGPTTokenizer,
    OPTConfig,
    OPTForCausalLM,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
    T5Config,
    T5ForConditionalGeneration,
    T5Tokenizer,
)

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
    return GPT2Tokenizer(vocabulary, merges, **{"model_max_length": 64, **options})


def bart_tokenizer(**options):
    """Return BART's and RoBERTa's own tokenizer."""
    vocabulary, merges = _byte_level(["<s>", "<pad>", "</s>", "<unk>"])
    vocabulary["<mask>"] = len(vocabulary)
    return BartTokenizer(vocabulary, merges, **{"model_max_length": 64, **options})


def llama_tokenizer(**options):
    """Return Llama's own tokenizer: a space before every text, unknown letters as bytes."""
    tokenizer = Tokenizer(pieces.BPE(fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Punctuation(), pre_tokenizers.Metaspace(prepend_scheme="first", split=True)]
    )
    vocabulary, merges = _merges(tokenizer, ["<unk>", "<s>", "</s>", *BYTES])
    options = {"model_max_length": 64, "add_bos_token": True, **options}
    return LlamaTokenizer(vocabulary, merges, **options)


def gpt1_tokenizer(**options):
    """Return GPT-1's own tokenizer: small letters only, pieces that close a word are marked."""
    tokenizer = Tokenizer(pieces.BPE(end_of_word_suffix="</w>", unk_token="<unk>"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    vocabulary, merges = _merges(tokenizer, ["<unk>"], end_of_word_suffix="</w>")
    return OpenAIGPTTokenizer(vocabulary, merges, **{"model_max_length": 64, **options})


def t5_tokenizer(**options):
    """Return T5's own tokenizer: words of the sentences and single letters, ten sentinels."""
    words = sorted({f"▁{word.strip('.,')}" for text in SENTENCES for word in text.split()})
    letters = sorted(set("".join(SENTENCES)) - {" "})
    vocabulary = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -3.0)]
    vocabulary += [(word, -4.0) for word in words] + [(letter, -6.0) for letter in letters]
    vocabulary += [(f"<extra_id_{i}>", 0.0) for i in reversed(range(10))]
    return T5Tokenizer(vocabulary, extra_ids=10, **{"model_max_length": 64, **options})


def letters_tokenizer():
    """Return a tokenizer of three letters and an end, so that all texts can be listed."""
    vocabulary = {CLOSING: 0, **{letter: i + 1 for i, letter in enumerate(LETTERS)}}
    tokenizer = Tokenizer(pieces.WordLevel(vocabulary, unk_token=CLOSING))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=CLOSING, eos_token=CLOSING, model_max_length=64
    )


def _spread(model, by=0.3):
    """Set the matrices wide apart, so that answers differ by much."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, by)
    return model


def gpt2(tokenizer, *, seed=0, positions=64):
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=positions,
        n_embd=32,
        n_layer=2,
        n_head=2,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return _spread(GPT2LMHeadModel(config))


SMALL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": None,
}


def llama(tokenizer, *, seed=0):
    torch.manual_seed(seed)
    return _spread(LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **SMALL)))


def mistral(tokenizer, *, seed=0, window=5):
    """Return a Mistral all of whose layers see the last few tokens only."""
    torch.manual_seed(seed)
    config = MistralConfig(vocab_size=len(tokenizer), sliding_window=window, **SMALL)
    return _spread(MistralForCausalLM(config))


def gemma3(tokenizer, *, seed=0, window=5):
    """Return a Gemma 3 whose first layer sees the last few tokens only, the second all."""
    torch.manual_seed(seed)
    kinds = ["sliding_attention", "full_attention"]
    config = Gemma3TextConfig(
        vocab_size=len(tokenizer), sliding_window=window, layer_types=kinds, **SMALL
    )
    return _spread(Gemma3ForCausalLM(config))


def gpt_neo(tokenizer, *, seed=0, window=5):
    """Return a GPT-Neo whose second layer sees the last few tokens only."""
    torch.manual_seed(seed)
    config = GPTNeoConfig(
        vocab_size=len(tokenizer),
        max_position_embeddings=64,
        hidden_size=32,
        num_layers=2,
        num_heads=2,
        attention_types=[[["global", "local"], 1]],
        window_size=window,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return _spread(GPTNeoForCausalLM(config))


def gpt1(tokenizer, *, seed=0):
    """Return a GPT-1, which keeps no states from one token to the next."""
    torch.manual_seed(seed)
    config = OpenAIGPTConfig(
        vocab_size=len(tokenizer), n_positions=64, n_embd=32, n_layer=2, n_head=4
    )
    return _spread(OpenAIGPTLMHeadModel(config))


def opt(tokenizer, *, seed=0):
    """Return an OPT, whose head reads from a decoder within its body."""
    torch.manual_seed(seed)
    config = OPTConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        word_embed_proj_dim=32,
        ffn_dim=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return _spread(OPTForCausalLM(config))


def mamba(tokenizer, *, seed=0):
    """Return a Mamba, which has no attention; with the tokenizer of GPT-2, nearly its own."""
    torch.manual_seed(seed)
    config = MambaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        state_size=4,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return _spread(MambaForCausalLM(config))


def t5(tokenizer, *, seed=0):
    torch.manual_seed(seed)
    config = T5Config(
        vocab_size=len(tokenizer),
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
    )
    return _spread(T5ForConditionalGeneration(config))


def bart(tokenizer, *, seed=0, positions=64, **options):
    torch.manual_seed(seed)
    config = BartConfig(
        vocab_size=len(tokenizer),
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_position_embeddings=positions,
        **options,
    )
    return _spread(BartForConditionalGeneration(config))


# neither in alphabetical order nor named as anybody would expect
LABELS = ("zest", "LABEL_0", "näher am Tor")


def _named(kind):
    """Return what a config says of the labels."""
    options = {
        "id2label": dict(enumerate(LABELS)),
        "label2id": {name: number for number, name in enumerate(LABELS)},
    }
    return options | ({"problem_type": kind} if kind else {})


ENCODER = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
}


def bert_classifier(tokenizer, *, kind=None, seed=0):
    torch.manual_seed(seed)
    config = BertConfig(vocab_size=len(tokenizer), **ENCODER, **_named(kind))
    return _spread(BertForSequenceClassification(config))


def roberta_classifier(tokenizer, *, kind=None, seed=0):
    """Return a RoBERTa of 40 positions, the first two of which belong to the padding."""
    torch.manual_seed(seed)
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        **ENCODER,
        **_named(kind),
    )
    return _spread(RobertaForSequenceClassification(config))


def gpt2_classifier(tokenizer, *, kind=None, seed=0):
    """Return a GPT-2 that judges by the last token, and knows of no padding."""
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=40,
        n_embd=32,
        n_layer=2,
        n_head=2,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        **_named(kind),
    )
    return _spread(GPT2ForSequenceClassification(config))


MADE = {  # by kind: the model and its tokenizer
    "gpt2": (gpt2, gpt2_tokenizer),
    "llama": (llama, llama_tokenizer),
    "mistral": (mistral, llama_tokenizer),
    "gemma3": (gemma3, llama_tokenizer),
    "gpt_neo": (gpt_neo, gpt2_tokenizer),
    "opt": (opt, gpt2_tokenizer),
    "gpt1": (gpt1, gpt1_tokenizer),
    "mamba": (mamba, gpt2_tokenizer),
}
