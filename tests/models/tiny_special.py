"""Tiny models of the kinds that need to be told more than the tokens, saved as a user's would be.

Vocabularies are written by hand: which pieces a word has is known, and not learnt.
"""

import json
from string import ascii_letters, punctuation

import torch
import transformers as hf
from tokenizers import AddedToken, pre_tokenizers
from transformers.models.mbart.tokenization_mbart import FAIRSEQ_LANGUAGE_CODES

WORDS = ("kind", "brave", "calm", "dull", "eager", "fair")  # one piece each
SPLIT = {"kindly": ("kind", "ly"), "unkindly": ("un", "kind", "ly")}
NAMES = ("Ada", "Bo", "Cleo", "Dag")
FORMS = (":face_with_tears_of_joy:", "HTTPURL", "@USER", "'ami", "l'", "ami", "a", "the", "l")
LETTERS = ascii_letters + punctuation
LANGUAGES = {"de": 0, "en": 1, "fr": 2}
SPREAD = 0.3  # of the weights, wide enough apart that words differ


def merges(spelt):
    """Return the merges that build pieces from left to right, each given by its signs."""
    pairs = []
    for first, *others in spelt:
        done = first
        for sign in others:
            pairs.append((done, sign))
            done += sign
    return list(dict.fromkeys(pairs))


def whole_and_parts():
    """Return all whole words, and the pieces that others begin with and end in."""
    heads = sorted({piece for pieces in SPLIT.values() for piece in pieces[:-1]})
    tails = sorted({pieces[-1] for pieces in SPLIT.values()})
    return [*FORMS, *WORDS, *NAMES], heads, tails  # merges of the first are made first


def old_bpe():
    """Return the merges of byte-pair encodings whose words end in ``</w>``."""
    words, heads, tails = whole_and_parts()
    return merges([*([*piece[:-1], f"{piece[-1]}</w>"] for piece in [*words, *tails]), *heads])


def xlm_tokenizer(folder, *, lowercase=False, languages=LANGUAGES):
    """Write the files of an XLM tokenizer and open them."""
    words, heads, tails = whole_and_parts()
    special = ["<s>", "</s>", "<pad>", "<unk>", *(f"<special{i}>" for i in range(10))]
    pieces = [*heads, *LETTERS, *(f"{piece}</w>" for piece in [*words, *tails, *LETTERS])]
    entries = dict.fromkeys([*special, *pieces])
    vocabulary = {piece: i for i, piece in enumerate(entries)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("".join(f"{a} {b}\n" for a, b in old_bpe()))
    options = {"lang2id": languages, "id2lang": {str(i): x for x, i in languages.items()}}
    options["do_lowercase_and_remove_accent"] = lowercase
    return hf.XLMTokenizer(folder / "vocab.json", folder / "merges.txt", **options)


def made(kind, size, **options):
    """Return a model with random weights."""
    torch.manual_seed(0)
    return kind(kind.config_class(vocab_size=size, **options))


ENDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}


def xlm(tokenizer, *, languages=LANGUAGES, embedded=True):
    """Return an XLM with random weights; its config names another mask than its tokenizer."""
    options = {"emb_dim": 32, "n_layers": 2, "n_heads": 2, "max_position_embeddings": 40}
    options |= {"embed_init_std": SPREAD, "init_std": SPREAD, "use_lang_emb": embedded}
    options |= {"n_langs": len(languages), "lang2id": languages, "mask_token_id": 7}
    options |= {"id2lang": {str(i): x for x, i in languages.items()}}
    options |= {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    return made(hf.XLMWithLMHeadModel, len(tokenizer), **options)


def bertweet_files(folder, *, counts=True):
    """Write the files of a BERTweet tokenizer, as the Hub has them."""
    words, heads, tails = whole_and_parts()
    pieces = [*words, *tails, *LETTERS, *(f"{piece}@@" for piece in [*heads, *LETTERS])]
    entries = list(dict.fromkeys(pieces))
    (folder / "vocab.txt").write_text("".join(f"{piece} 1\n" for piece in entries))
    count = " 1" if counts else ""
    (folder / "bpe.codes").write_text("".join(f"{a} {b}{count}\n" for a, b in old_bpe()))
    said = {"tokenizer_class": "BertweetTokenizer", "normalization": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    return 4 + len(entries) + 1  # before them <s>, <pad>, </s>, <unk>, behind them <mask>


def bertweet(size):
    """Return a RoBERTa with as many positions as BERTweet, and random weights."""
    options = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    options |= {"intermediate_size": 64, "max_position_embeddings": 130, "type_vocab_size": 1}
    options |= {"initializer_range": SPREAD, "tokenizer_class": "BertweetTokenizer", **ENDS}
    return made(hf.RobertaForMaskedLM, size, **options)


def unigrams():
    """Return the pieces of a SentencePiece vocabulary with their scores, whole words the best."""
    words, heads, tails = whole_and_parts()
    starts = [f"▁{piece}" for piece in [*words, *heads]]
    letters = [("▁", -5.0), *((letter, -9.0) for letter in LETTERS)]
    return [(piece, -2.0) for piece in dict.fromkeys([*starts, *heads, *tails])] + letters


def xlnet_tokenizer():
    """Return an XLNet tokenizer with the special pieces where XLNet has them."""
    special = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
    return hf.XLNetTokenizer(vocab=[*((piece, 0.0) for piece in special), *unigrams()])


def xlnet(tokenizer):
    """Return an XLNet with random weights."""
    options = {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 64, "initializer_range": SPREAD}
    return made(hf.XLNetLMHeadModel, len(tokenizer), **options)


def bart_tokenizer():
    """Return BART's byte-level tokenizer, in which pieces carry their space."""
    words, heads, tails = whole_and_parts()
    pairs = merges([*(f"Ġ{piece}" for piece in [*words, *heads]), *words, *heads, *tails])
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    entries = dict.fromkeys([*special, *alphabet, *(a + b for a, b in pairs), "<mask>"])
    mask = AddedToken("<mask>", lstrip=True, special=True)
    vocabulary = {piece: i for i, piece in enumerate(entries)}
    return hf.BartTokenizer(vocab=vocabulary, merges=pairs, mask_token=mask)


def bart(tokenizer, *, kind=hf.BartForConditionalGeneration, **options):
    """Return a BART with random weights, whose decoder begins with ``</s>``, or an mBART."""
    if kind is hf.BartForConditionalGeneration:
        options["decoder_start_token_id"] = 2
    for side in ("encoder", "decoder"):
        options |= {f"{side}_layers": 2, f"{side}_attention_heads": 2, f"{side}_ffn_dim": 64}
    options |= {"d_model": 32, "max_position_embeddings": 40, "init_std": SPREAD, **ENDS}
    return made(kind, len(tokenizer), **options)


def mbart_tokenizer():
    """Return an mBART tokenizer with its 25 languages."""
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = [*((piece, 0.0) for piece in special), *unigrams()]
    last = [(piece, 0.0) for piece in [*FAIRSEQ_LANGUAGE_CODES, "<mask>"]]
    return hf.MBartTokenizer(vocab=[*pieces, *last])


def mbart(tokenizer):
    """Return an mBART with random weights."""
    return bart(tokenizer, kind=hf.MBartForConditionalGeneration)


def saved(name, folder):
    """Save a model and its tokenizer of one kind into a folder, and return it."""
    if name == "bertweet":
        model = bertweet(bertweet_files(folder))
    else:
        given = (folder,) if name == "xlm" else ()  # these files are read, and then written again
        tokenizer = globals()[f"{name}_tokenizer"](*given)
        model = globals()[name](tokenizer)
        tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    return folder
