"""Probes: what is asked of language models, and what is computed from their answers."""

PROBES = {"associations": "ask a model for words beside names"}  # module: what it does
EACH = {"pmi": "words and genders, pointwise mutual information"}  # analyses of single models
ALL = {"pooled": "words and genders, models pooled"}  # analyses over all models at once
