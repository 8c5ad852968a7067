"""Probes (prompts for language models) and analyses of the responses."""

from pathlib import Path

from plumbline.builders.core.params import STUDIES

_HERE = Path(__file__).parent
PROBES = {  # purpose of each probe, by module name
    "associations": "a model's words for names",
    "representations": "a model's representations of words",
    "completions": "a model's completions about social groups",
    "after_training": "the same after training on news",
    "classification": "classification of texts, and of them with other names",
    "perplexity": "pseudo-perplexity of these texts under a masked model",
    "agreement": "a model's agreement with statements",
    "stances": "a model's political stances, before and after further pretraining",
    "finetuned_classifiers": "classifiers fine-tuned from a model in each of its states",
}
EACH = {  # analyses of single models
    "pmi": "words and genders, pointwise mutual information",
    "latent": "words by gender and sentiment, a latent-variable model",
    "supersenses": "classes of the words that go with each gender",
    "clusters": "words of a gender in the model's states, k-means",
    "subgroups": "gender and sentiment among parts of the people",
    "robustness": "which numbers move with settings, names and templates",
}
POOLED = "pooled"  # folder of the tables over groups of models
OF_GROUPS = {"pmi": "pooled_pmi"}  # the simulation of each analysis with pooled tables
ALL = {  # analyses over all models at once
    "sentiment": "sentiments of the words that deviate most, men and women",
    "averages": "sentiment shares by language, averaged over models",
    "anova": "sentiment shares by architecture, size and language",
    "lexicon_evaluation": "how well lexica tell the sentiment of texts; needs no model",
    "recall": "how many attributes of autocompletion are among a model's best words",
    "emotions": "emotions of the words that go with social groups",
    "rsa": "how alike models are in these emotions",
    "shift": "what training on news does to completions about groups",
    "nationality": "predictions of classifiers that change with another country's name",
    "compass": "where models stand on political axes, and what partisan texts do to it",
    "values": "values a model seems to have, and whether grammatical gender matters",
    "fairness": "how well classifiers of differently pretrained models do, by group",
    "ensemble": "votes of classifiers of differently pretrained models, and of one",
    "reliability": "what the scores of all studies vary with, and how far to trust them",
}
ACROSS = ("reliability",)  # folders that contain an analysis over all studies
ASIDE = {  # analyses of models that the user names, each in a folder of its name; not stages
    "comparison": "by how much two models differ, over the same names, groups, statements, texts",
}
CALIBRATED = {name: name for name in EACH} | {tables: name for name, tables in OF_GROUPS.items()}
CALIBRATED |= {name: name for name in (*ALL, *ASIDE)}  # the analysis of each table of error rates


def module_of(name: str) -> str:
    """Return the name of the module of a probe or an analysis."""
    if name in ASIDE:
        return f"plumbline.probes.{name}.{name}"
    (study,) = [s for s in (*STUDIES, *ACROSS) if (_HERE / s / f"{name}.py").is_file()]
    return f"plumbline.probes.{study}.{name}"
