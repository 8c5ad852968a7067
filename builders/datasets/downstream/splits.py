"""Splits that a hash draws: the same on any machine, whatever the order of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from plumbline.builders.core.snapshot import hash64

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Unit(NamedTuple):
    """What goes into one split as a whole."""

    name: str
    stratum: str  # units of one stratum are spread over the splits as the shares say
    size: int = 1  # rows in it


def drawn(units: Iterable[Unit], shares: Mapping[str, float], seed: int) -> dict[str, str]:
    """Return the split of each unit.

    Units are put in order, stratum by stratum and within it by a hash of seed and name; each goes
    to the split that is furthest behind its share of the rows so far, the first one of those that
    are alike. So every stratum, and the whole, is within a unit or so of the shares.

    Parameters
    ----------
    shares
        Share of each split, in any unit; those that are 0 stay empty.

    Examples
    --------
    >>> found = drawn([Unit(str(i), "") for i in range(10)], {"train": 0.7, "test": 0.3}, 1)
    >>> sorted(found.values())
    ['test', 'test', 'test', 'train', 'train', 'train', 'train', 'train', 'train', 'train']
    """
    total = sum(shares.values())
    wanted = {split: share / total for split, share in shares.items() if share > 0}
    filled = dict.fromkeys(wanted, 0)
    found = {}
    rows = 0
    for unit in sorted(units, key=lambda u: (u.stratum, hash64(f"{seed}\n{u.name}"), u.name)):
        rows += unit.size
        behind = {split: share * rows - filled[split] for split, share in wanted.items()}
        split = max(behind, key=lambda s: round(behind[s], 9))
        filled[split] += unit.size
        found[unit.name] = split
    return found
