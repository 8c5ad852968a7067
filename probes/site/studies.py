"""The studies: what each has a page of, from which analyses, models and datasets.

A study that is added is one entry here, and one in :data:`plumbline.probes.site.readings.KINDS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from plumbline.probes.leaning import page_compass, page_fairness
from plumbline.probes.nationality import page as nationality
from plumbline.probes.politicians import (
    page_anova,
    page_clusters,
    page_latent,
    page_pooled,
    page_robustness,
    page_sentiment_lexica,
    page_sentiments,
    page_subgroups,
    page_supersenses,
    page_words,
)
from plumbline.probes.stereotypes import page_emotions, page_recall, page_rsa, page_shift
from plumbline.probes.values import page as values

if TYPE_CHECKING:
    from types import ModuleType


class Study(NamedTuple):
    """A page of the site."""

    name: str  # of the file, and of the study in the docs
    title: str
    about: str
    paper: str
    sections: tuple[ModuleType, ...]  # in the order in which they are read
    analyses: tuple[str, ...]
    probes: tuple[str, ...]
    datasets: tuple[str, ...]


STUDIES = (
    Study(
        "politicians",
        "Gender bias towards politicians",
        "What words do language models put beside the names of politicians, and do they differ "
        "between men, women and non-binary people?",
        "Stańczak, Ray Choudhury, Pimentel, Cotterell and Augenstein (2023)",
        (
            *(
                page_words,
                page_latent,
                page_supersenses,
                page_sentiments,
                page_anova,
                page_clusters,
                page_subgroups,
                page_pooled,
            ),
            *(page_robustness, page_sentiment_lexica),
        ),
        (
            *("pmi", "latent", "supersenses", "sentiment", "anova", "clusters", "subgroups"),
            *("pooled", "robustness", "sentiment_lexica"),
        ),
        ("associations", "representations"),
        ("politicians", "words", "lexica", "supersenses", "labelled_texts"),
    ),
    Study(
        "stereotypes",
        "Stereotypes and emotions",
        "Which of the stereotypes that search engines suggest do language models recall, what "
        "emotions do their words evoke, and how does training on news shift them?",
        "Choenni, Shutova and van Rooij (2021)",
        (page_recall, page_emotions, page_rsa, page_shift),
        ("recall", "emotions", "rsa", "shift", "drift"),
        ("stereotypes", "finetuned"),
        ("social_groups", "stereotypes", "emotions", "outlets"),
    ),
    Study(
        "values",
        "Political values and grammatical gender",
        "With which political statements does a masked model agree, and does it matter whether a "
        "woman or a man is speaking?",
        "Al Ali and Libovický (2024)",
        (values,),
        ("values",),
        ("agreement",),
        ("statements", "survey"),
    ),
    Study(
        "nationality",
        "Nationality bias in names",
        "Does a classifier change its mind about a text with the country that a name is common in, "
        "and does that go with how likely a language model finds the text?",
        "Barriere and Cifuentes (2024)",
        (nationality,),
        ("nationality",),
        ("classification", "perplexity"),
        ("names", "targets", "counterfactuals"),
    ),
    Study(
        "leaning",
        "Political leaning, from pretraining to classifiers",
        "Where do models stand, what do partisan texts do to it, and what does that do to "
        "classifiers that are made of them?",
        "Feng, Park, Liu and Tsvetkov (2023)",
        (page_compass, page_fairness),
        ("compass", "fairness", "ensemble"),
        ("leaning", "finetune"),
        ("statements", "corpora", "downstream"),
    ),
)
