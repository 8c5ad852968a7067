"""Probes: what is asked of language models, and what is computed from their answers."""

from pathlib import Path

from plumbline.builders.core.params import STUDIES

_HERE = Path(__file__).parent
PROBES = {  # module: what it does
    "associations": "ask a model for words beside names",
    "representations": "look up how a model represents words",
    "stereotypes": "ask a model what it completes about social groups",
    "finetuned": "ask that again after training on news",
    "classification": "classify texts, and them with other names",
    "perplexity": "tell how likely a masked model finds these texts",
    "agreement": "ask a model whether somebody agrees with statements",
    "leaning": "ask a model, before and after more training, where it stands on politics",
    "finetune": "make classifiers of a model in each of its states, and ask them",
}
EACH = {  # analyses of single models
    "pmi": "words and genders, pointwise mutual information",
    "latent": "words by gender and sentiment, a latent-variable model",
    "supersenses": "classes of the words that go with each gender",
    "clusters": "words of a gender in the model's states, k-means",
    "subgroups": "gender and sentiment among parts of the people",
    "robustness": "which numbers move with settings, names and frames",
}
ALL = {  # analyses over all models at once
    "pooled": "words and genders, models pooled",
    "sentiment": "sentiments of the words that deviate most, men and women",
    "anova": "sentiment shares by architecture, size and language",
    "sentiment_lexica": "how well lexica tell the sentiment of texts; asks no model",
    "recall": "how many attributes of autocompletion are among a model's best words",
    "emotions": "emotions of the words that go with social groups",
    "rsa": "how alike models are in these emotions",
    "shift": "what training on news does to what a model says of groups",
    "nationality": "what classifiers change their mind about with another country's name",
    "compass": "where models stand on political axes, and what partisan texts do to it",
    "values": "values a model seems to have, and whether grammatical gender matters",
    "fairness": "how well classifiers of differently pretrained models do, by group",
    "ensemble": "votes of classifiers of differently pretrained models, and of one",
}

_MODULES = {  # where the name of a probe or an analysis is not that of its module
    "stereotypes": "completions",
    "finetuned": "after_training",
    "finetune": "finetuned_classifiers",
    "leaning": "stances",
    "pooled": "pooled_pmi",
    "sentiment_lexica": "lexicon_evaluation",
}


def module_of(name: str) -> str:
    """Return the module of a probe or an analysis."""
    stem = _MODULES.get(name, name)
    (study,) = [s for s in STUDIES if (_HERE / s / f"{stem}.py").is_file()]
    return f"plumbline.probes.{study}.{stem}"
