"""Probes: what is asked of language models, and what is computed from their answers."""

PROBES = {"associations": "ask a model for words beside names"}  # module: what it does
EACH = {  # analyses of single models
    "pmi": "words and genders, pointwise mutual information",
    "subgroups": "gender and sentiment among parts of the people",
}
ALL = {"pooled": "words and genders, models pooled"}  # analyses over all models at once
