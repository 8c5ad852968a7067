"""Name substitution as in the released code of Barriere and Cifuentes (2024), step by step.

This reimplements ``checklist/perturb.py`` and ``CountryGenderNamePerturbation.py`` of
valbarriere/biases_ppl at commit 60394489cd0e8ca5e5cb64120b9f8936b9dc25db.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from plumbline.builders.datasets.counterfactuals.substitute import draws, draws_again


def eligible(
    entities: Sequence[str], firsts: AbstractSet[str], lasts: AbstractSet[str]
) -> list[str]:
    """Return the entities that the released code replaces, including repeated ones.

    The first word must be a first name; the second, if it has more than two letters, must be a last
    name. Both are looked up with only the first letter capitalised, so that McDonald is in no list.
    The released code also determines the gender of the entity, but does not use it.
    """
    chosen = []
    for entity in entities:
        words = entity.split()
        if words[0].capitalize() not in firsts:
            continue
        if len(words) > 1 and len(words[1]) > 2 and words[1].capitalize() not in lasts:
            continue
        chosen.append(entity)
    return chosen


def replacements(
    entities: Sequence[str], firsts: Sequence[str], lasts: Sequence[str], number: int, key: str
) -> Iterator[tuple[str, str]]:
    """Yield ``number`` pairs of an entity and its substitute.

    For each entity, ``number`` names are drawn, including a last name if the entity has more than
    one word; ``number`` of all these pairs are then selected.
    """
    pairs = []
    for index, entity in enumerate(entities):
        names = [firsts[i] for i in draws_again(f"{key}/{index}/first", len(firsts), number)]
        if len(entity.split()) > 1:
            chosen = draws_again(f"{key}/{index}/last", len(lasts), number)
            names = [f"{name} {lasts[i]}" for name, i in zip(names, chosen, strict=True)]
        pairs += [(entity, name) for name in names]
    indices = draws(f"{key}/kept", len(pairs), number) if len(pairs) > number else range(len(pairs))
    yield from (pairs[index] for index in indices)


def substituted(text: str, entity: str, name: str) -> str:
    """Replace all occurrences of an entity, also in hashtags, with a name, keeping the name's case.

    Examples
    --------
    >>> substituted("LUKE won. Luke's #Luke", "Luke", "Théo")
    "LUKE won. Théo's #Théo"
    """
    return re.sub(rf"\b{re.escape(entity)}\b", lambda _: name, text)
