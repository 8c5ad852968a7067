"""Probes: what is asked of language models, and what is computed from their answers."""

PROBES = {"associations": "ask a model for words beside names"}  # module: what it does
EACH = {  # analyses of single models
    "pmi": "words and genders, pointwise mutual information",
    "latent": "words by gender and sentiment, a latent-variable model",
}
ALL: dict[str, str] = {}  # analyses over all models at once
