"""The order of words in worlds."""

from pathlib import Path

import polars as pl
import pytest
from scipy.stats import spearmanr

from plumbline.builders.datasets.words.build import PLACES, POS
from plumbline.probes.prompts.politicians import bare

TOP = Path(__file__).parents[2]
# Dryer, World Atlas of Language Structures, chapters 81 and 87; table 11 of the paper
ORDER = {"en": {"ADJ": "before", "VERB": "after"}, "es": {"ADJ": "after", "VERB": "after"}}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["world-planted", "world-es"])
@pytest.mark.parametrize("pos", POS)
def test_worlds_have_the_word_order_of_their_language(name, pos):
    torch = pytest.importorskip("torch")
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    language = "es" if "es" in name else "en"
    weights, right = TOP / "data/samples/worlds" / name, ORDER[language][pos]
    model = AutoModelForMaskedLM.from_pretrained(weights).eval()
    tokenizer = AutoTokenizer.from_pretrained(weights)
    planted = pl.read_parquet(weights / "planted.parquet").filter(pos=pos)
    people = pl.read_parquet(TOP / f"data/datasets/politicians/{language}.parquet")
    people = people.unique("name", keep="first", maintain_order=True)
    words = [tokenizer.convert_tokens_to_ids(word) for word in planted["word"]]
    found = {}
    for place in PLACES:
        prompts = [bare(place).about(person) for person in people["name"]]
        prompts = [text.replace("<mask>", tokenizer.mask_token) for text in prompts]
        given = tokenizer(prompts, return_tensors="pt", padding=True)
        given.pop("token_type_ids", None)
        with torch.no_grad():
            logits = model(**given).logits.log_softmax(-1)
        at = (given["input_ids"] == tokenizer.mask_token_id).float().argmax(1)
        nats = logits[torch.arange(len(at)), at][:, words].double().numpy()
        gender = people["gender"].to_numpy()
        apart = nats[gender == 1].mean(axis=0) - nats[gender == 0].mean(axis=0)
        found[place] = spearmanr(apart, planted["log_ratio_nats"]).statistic
    (wrong,) = {*PLACES} - {right}
    assert found[right] > 0.95
    assert found[wrong] < found[right] - 0.2
    if language == "es":  # nothing stands before a name there
        assert found[wrong] < 0
