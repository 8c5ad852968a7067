"""Probes: what is asked of language models, and what is computed from their answers."""

PROBES = {  # module: what it does
    "associations": "ask a model for words beside names",
    "representations": "look up how a model represents words",
}
EACH = {  # analyses of single models
    "pmi": "words and genders, pointwise mutual information",
    "clusters": "words of a gender in the model's states, k-means",
}
ALL: dict[str, str] = {}  # analyses over all models at once
