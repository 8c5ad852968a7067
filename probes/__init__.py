"""Probes (prompts for language models) and analyses of the responses."""

from pathlib import Path

from plumbline.builders.core.params import STUDIES

_HERE = Path(__file__).parent
PROBES = {  # purpose of each probe, by module name
    "associations": "a model's words for names",
    "representations": "a model's representations of words",
    "completions": "a model's completions about social groups",
    "after_training": "completions after training on news",
    "classification": "classification of texts, also with other names",
    "perplexity": "pseudo-perplexities of these texts under a masked model",
    "agreement": "a model's agreement with statements",
    "stances": "a model's political stances, before and after further pretraining",
    "finetuned_classifiers": "classifiers fine-tuned from each checkpoint of a model",
}
EACH = {  # analyses of single models
    "pmi": "pointwise mutual information of words and genders",
    "latent": "a latent-variable model of words by gender and sentiment",
    "supersenses": "semantic classes of the words associated with each gender",
    "clusters": "k-means clusters of the words of a gender by hidden states",
    "subgroups": "gender and sentiment in subgroups of people",
}
POOLED = "pooled"  # folder of the tables that pool groups of models
OF_GROUPS = {"pmi": "pooled_pmi"}  # by analysis with pooled tables, the name of its simulation
ALL = {  # analyses over all models at once
    "sentiment": "sentiments of the words that deviate most, by gender",
    "averages": "sentiment shares by language, averaged over models",
    "anova": "sentiment shares by architecture, size and language",
    "lexicon_evaluation": "accuracy of lexica for the sentiment of texts; needs no model",
    "recall": "share of the attributes of autocompletion among a model's best words",
    "emotions": "emotions of the words associated with social groups",
    "rsa": "similarity of models in these emotions",
    "shift": "effects of training on news on completions about groups",
    "nationality": "changes in the predictions of classifiers with names of another country",
    "compass": "positions of models on political axes, and effects of partisan texts",
    "values": "values that a model expresses, and effects of grammatical gender",
    "fairness": "accuracy of classifiers of differently pretrained models, by group",
    "ensemble": "votes of classifiers of differently pretrained models, compared with one",
    "reliability": "sources of variation in the scores of all studies, and their reliability",
}
ACROSS = ("reliability",)  # folders with an analysis across all studies
ASIDE = {  # analyses of models named by the user; each has its own folder, and none is a stage
    "comparison": "differences between two models over the same names, groups, statements, texts",
}
CALIBRATED = {name: name for name in EACH} | {tables: name for name, tables in OF_GROUPS.items()}
CALIBRATED |= {name: name for name in (*ALL, *ASIDE)}  # analysis, by table of error rates


def module_of(name: str) -> str:
    """Return the name of the module that implements a probe or an analysis."""
    if name in ASIDE:
        return f"plumbline.probes.{name}.{name}"
    (study,) = [s for s in (*STUDIES, *ACROSS) if (_HERE / s / f"{name}.py").is_file()]
    return f"plumbline.probes.{study}.{name}"
