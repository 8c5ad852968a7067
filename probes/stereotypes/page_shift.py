"""What training on news does: the analysis ``shift``, as Table 4 and Figure 7, and emotions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.report import figures_shift
from plumbline.probes.report.view import (
    Block,
    Part,
    Section,
    Table,
    grouped,
    interval,
    labelled,
    number,
    parts,
)
from plumbline.probes.stereotypes.schemas import (
    ATTRIBUTES,
    CORRECTED,
    EVERY,
    FAITHFUL,
    GROUPS,
    SHIFTS,
)
from plumbline.probes.stereotypes.training_effects import EMOTION, KEPT, RECALL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOTE = (
    "A model is trained on articles of an outlet and asked again. Any training shifts a model: the "
    "difference is the change minus that by a control corpus about other things, with the same "
    "share and seeds; where it has more than 5% more or fewer articles there is no p. Intervals "
    "and p are over groups of people, given these trainings (p: outlet and control exchanged at "
    "random in each group); another training would shift them otherwise, so that what is "
    "filled or has a star must exceed Student's limit over seeds too, and with one seed nothing "
    "has. sd is over seeds. p is adjusted over all corpora, shares, categories and outcomes of a "
    "measure. Similarity is rho - 1 between the emotion profiles before and "
    "after: 0 is no shift."
)
SHOWN = 2  # groups of a corpus whose words are drawn


def section(data: Path) -> Section:
    """Return tables and figures for each model, language and ranking."""
    folder = data / "tables/shift"
    found: list[tuple[str, Block]] = []
    if (folder / "shifts.parquet").is_file():
        read = {
            name: labelled(pl.read_parquet(folder / f"{name}.parquet"), schema)
            for name, schema in (("shifts", SHIFTS), ("groups", GROUPS), ("attributes", ATTRIBUTES))
        }
        keys = ("model", "language", "ranking")
        for place, own in parts(read["shifts"], *keys):
            here = pl.all_horizontal(pl.col(k) == v for k, v in zip(keys, place, strict=True))
            title = ", ".join(map(str, place))
            shown = [
                *_emotions(own, title),
                *_words(read["attributes"].filter(here), read["groups"].filter(here), title),
                Part("", tables=(*_similarities(own), _others(own))),
            ]
            found.append((str(place[0]), Block(title, shown)))
    title = "What training on news does to what a model says of groups"
    return Section("shift", title, NOTE, grouped(found), "shift")


def _largest(table: pl.DataFrame) -> pl.DataFrame:
    return table.filter(pl.col("share") == pl.col("share").max().over("corpus"))


def _emotions(own: pl.DataFrame, title: str) -> Iterator[Part]:
    """Yield the emotions of all groups, and of categories where some outlet makes a difference."""
    table = _largest(own.filter(pl.col("measure") == EMOTION))
    order = pl.col("outcome").replace_strict(list(AFFECTS), range(len(AFFECTS)))
    table = table.sort("corpus").sort(order, maintain_order=True)
    for (category,), part in parts(table, "category"):
        tested = part.drop_nulls("difference").to_dicts()
        sure = any(r["significant"] for r in tested)
        if category != EVERY and not sure:
            continue
        drawn = figures_shift.emotions(tested, f"{title}: {category}") if tested else ""
        rows = [
            [
                str(r["outcome"]),
                r["corpus"],
                _percent(r["base"]),
                f"{_percent(r['value'])} ({_limits(r)})",
                _percent(r["spread"]),
                f"{_percent(r['difference'])} ({_limits(r, '_difference')})",
                number(r["p"], 4),
                number(r["p_bh"], 3),
            ]
            for r in part.to_dicts()
        ]
        numbers = ("before, %", "change", "sd", "minus control", "p", "p adj.")
        groups: Any = part["n"].max()
        caption = f"Emotions, {category}: {groups} groups"
        yield Part(caption, drawn, tables=(Table("", ("affect", "corpus"), numbers, rows),))


def _words(attributes: pl.DataFrame, groups: pl.DataFrame, title: str) -> Iterator[Part]:
    """Yield the words of the groups that move most, and the sums of all groups."""
    rows = [
        [
            category,
            corpus,
            *(f"{(part['fate'] == fate).sum():,}" for fate in ("kept", "removed", "added")),
            *(
                _share(part.filter(pl.col("fate") == fate), colour)
                for fate in ("removed", "added")
                for colour in ("positive", "negative")
            ),
        ]
        for (category, corpus), part in parts(attributes, "category", "corpus")
    ]
    of = ("removed positive", "removed negative", "added positive", "added negative")
    numbers = ("kept", "removed", "added", *of)
    caption = "Fates of the first words of all lists (Figure 7), whole corpora"
    yield Part("Attributes", tables=(Table(caption, ("category", "corpus"), numbers, rows),))
    corpora = attributes["corpus"].unique().sort().to_list()
    for category, group in _moved(groups):
        own = attributes.filter((pl.col("category") == category) & (pl.col("group") == group))
        query: Any = own["query"].min()
        drawn = figures_shift.attributes(
            own.filter(pl.col("query") == query).to_dicts(), corpora, f"{title}: {query}"
        )
        yield Part(f"{group} ({category})", drawn)


def _moved(groups: pl.DataFrame) -> list[tuple[str, str]]:
    """Return the groups whose positive words change most beside the control, for each corpus."""
    here = _largest(groups.filter(pl.col("outcome") == "positive")).drop_nulls("difference")
    ranked = here.sort(-pl.col("difference").abs(), "category", "group")
    most = ranked.group_by("corpus", maintain_order=True).head(SHOWN)
    return sorted(set(most.select("category", "group").iter_rows()))


def _similarities(own: pl.DataFrame) -> Iterator[Table]:
    """Yield rho - 1 by corpus and category, as the paper's Table 4, in both readings."""
    for reading in (FAITHFUL, CORRECTED):
        table = own.filter(pl.col("measure") == reading)
        names = [n for n in table["category"].unique().sort().to_list() if n != EVERY] + [EVERY]
        rows = []
        for (corpus, share), part in parts(table, "corpus", "share"):
            by = {r["category"]: r for r in part.to_dicts()}
            rows.append([corpus, f"{share:.0%}", *(_starred(by.get(name)) for name in names)])
        caption = f"Similarity to the model before, {reading.split()[1]}; *: unlike the control's"
        yield Table(caption, ("corpus", "share"), tuple(names), rows)


def _starred(row: dict[str, Any] | None) -> str:
    """Return a value; nothing where too few groups have a profile."""
    return "" if row is None else number(row["value"]) + ("*" if row["significant"] else "")


def _others(own: pl.DataFrame) -> Table:
    table = own.filter(pl.col("measure").is_in([RECALL, KEPT]) & (pl.col("category") == EVERY))
    rows = [
        [
            f"{r['measure']}, {r['outcome']}",
            r["corpus"],
            f"{r['share']:.0%}",
            number(r["base"]),
            f"{number(r['value'])} ({interval(r)})",
            number(r["spread"]),
            f"{number(r['difference'])} ({interval(r, side='_difference')})",
            number(r["p"], 4),
            number(r["p_bh"], 3),
        ]
        for r in table.sort("measure", "outcome", "corpus", "share").to_dicts()
    ]
    numbers = ("before", "change", "sd", "minus control", "p", "p adj.")
    words = ("measure", "corpus", "share")
    return Table("Recall of attributes, and share of the first words kept", words, numbers, rows)


def _share(part: pl.DataFrame, colour: str) -> str:
    mean: Any = part[colour].mean()
    return _percent(mean)


def _percent(value: float | None) -> str:
    return number(None if value is None else 100 * value, 1)


def _limits(row: dict[str, Any], side: str = "") -> str:
    scaled = {
        name: None if row[name] is None else 100 * row[name]
        for name in (f"low{side}", f"high{side}")
    }
    return interval(scaled, 1, side)
