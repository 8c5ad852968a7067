"""What a page is made of: declarations of a study's tables and figures, and what they come to.

A study declares steps; a step shows views of tables, block by block. Here tables are filtered and
written as cells.
"""

from __future__ import annotations

import re
from collections import Counter
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from plumbline.builders.core.params import parse
from plumbline.probes.report.figures import Forest
from plumbline.probes.report.tables import Source, Tables, kept, parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

LEVEL = 0.05  # of adjusted p: what is marked
MISSING = ("", "–")  # cells
Row = dict[str, Any]


class Linked(str):
    """Text that leads somewhere: HTML, which the templates write as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return itself."""
        return self


def link(address: str, text: str) -> Linked:
    """Return text that leads to an address, from the page that it stands on.

    Examples
    --------
    >>> link("models/a.html", "a & b")
    '<a href="models/a.html">a &amp; b</a>'
    """
    return Linked(f'<a href="{escape(address)}">{escape(text)}</a>')


class Table(NamedTuple):
    """Cells as they are shown; the first of a row is its header."""

    caption: str
    words: tuple[str, ...]  # columns of text, which come first
    numbers: tuple[str, ...]  # columns of numbers
    rows: list[list[str]]
    note: str = ""  # below it
    missing: tuple[str, ...] = ()  # why no row has a number, where none has


class Part(NamedTuple):
    """A figure and tables that belong together."""

    heading: str = ""
    figure: str | Forest = ""  # SVG, or what is drawn when all axes of the section are known
    caption: str = ""
    tables: tuple[Table, ...] = ()
    open: bool = False  # whether tables are never folded, however long


class Block(NamedTuple):
    """What one may fold; without a title it stands open."""

    title: str
    parts: list[Part]


class Group(NamedTuple):
    """The blocks of a model, of a world or of a kind of models."""

    title: str
    blocks: list[Block]
    name: str = ""  # id on the page
    model: str = ""  # that it is of, if it is of one


class Section(NamedTuple):
    """A step of the study, as it is shown."""

    name: str  # id on the page
    title: str
    note: str
    groups: list[Group]
    stage: str  # that makes its tables
    calibration: str = ""  # of its tests, a sentence that the note ends with


class Place(NamedTuple):
    """Where on the page something stands."""

    tables: Tables
    at: Row  # values of the columns that it is of
    title: str

    def read(self, source: Source, *but: str) -> pl.DataFrame:
        """Return the rows of a table that are of here, whatever they have in some columns."""
        frame = self.tables.read(source)
        names = {*frame.columns} - {*but}
        return kept(frame, {name: value for name, value in self.at.items() if name in names})


class Listing(NamedTuple):
    """A table on the page.

    Columns are declared as ``name:digits?empty=head``, with ``;`` between them, all but the name as
    needed. A name ``low..high`` is an interval, ``interval`` that of both; a text with braces is
    filled with the row's values. Heads and captions may name columns of the first row in braces.
    """

    words: str  # columns of text
    numbers: str = ""  # columns of numbers
    caption: str = ""
    source: Source = ""  # "": that of the view
    where: Mapping[str, Any] = {}  # see `kept`
    sort: str = ""
    split: str = ""  # columns: a table for each of their values
    rows: Callable[[pl.DataFrame], pl.DataFrame | Iterable[Row]] | None = None
    digits: int = 2
    ratio: bool = False  # detectable is an increase in percent; decreases by its factor are as well


class View(NamedTuple):
    """A figure and tables, again for all values of some columns."""

    source: Source
    listings: Sequence[Listing] = ()
    where: Mapping[str, Any] = {}
    facets: str = ""
    heading: str = ""  # this and the caption may name columns of the first row in braces
    caption: str = ""
    figure: Callable[[pl.DataFrame, Place], str | Forest] | None = None
    tests: str = ""  # columns of p with names of their own that the figure marks


class Fold(NamedTuple):
    """A block for all values of some columns, open where it has no title."""

    views: Sequence[View]
    title: str = ""  # may name columns of the first row, and {rows}, how many there are
    keys: str = ""


class Step(NamedTuple):
    """A section as it is declared."""

    name: str
    title: str
    note: str
    stage: str
    folds: Sequence[Fold]
    keys: str = ""  # columns: a group for each of their values


class Readings(NamedTuple):
    """The main numbers of a study, in two readings."""

    about: str
    unit: str
    stage: str
    source: Source  # columns model, reading, value, low, high, zero (if it is not 0), and these:
    what: str
    pair: tuple[str, str] = ("faithful", "corrected")


class Limit(NamedTuple):
    """Why numbers of controls that are not as they should be are no surprise."""

    analysis: str
    measure: str  # a regular expression that it matches
    about: str


class Study(NamedTuple):
    """A page of the site."""

    name: str  # of the file, and of the study in the docs
    title: str
    about: str
    paper: str
    steps: Sequence[Step]
    analyses: Sequence[str]
    probes: Sequence[str]
    datasets: Sequence[str]
    readings: Readings | None = None  # none over all studies
    limits: Sequence[Limit] = ()  # known ones
    planted: Callable[[Tables, str], list[Part]] | None = None  # more of a world, beside controls


def study(code: str, names: Mapping[str, Any]) -> Study:
    """Return what ``page.yaml`` beside a page's code declares, with the functions of that code.

    ``code``: the file of the page.
    ``names``: its functions, of which the declaration names some, with an argument in parentheses
    or without: as a source, to draw a figure, to make rows.
    """
    study = _made(Study, parse(Path(code).with_name("page.yaml")), names)
    assert isinstance(study, Study)
    return study


def _made(kind: Callable[..., Any], declared: Row, names: Mapping[str, Any]) -> Any:
    own = dict(declared)
    for key, value in declared.items():
        if key in KINDS:
            own[key] = [_made(KINDS[key], each, names) for each in value]
        elif key == "readings":
            own[key] = _made(Readings, value, names)
        elif key in ("figure", "rows", "planted", "source"):
            name, _, given = value.rstrip(")").partition("(")
            if key != "source" or given or "/" not in value:
                own[key] = names[name](given) if given else names[name]
    return kind(**own)


KINDS: dict[str, Callable[..., Any]] = {
    "limits": Limit,
    "steps": Step,
    "folds": Fold,
    "views": View,
    "listings": Listing,
}


def section(step: Step, tables: Tables) -> Section:
    """Return what a step shows of the tables there are."""
    groups = []
    for of in _values(step.keys, [v for fold in step.folds for v in fold.views], tables, {}):
        blocks = []
        folds = [(f, of | own) for f in step.folds for own in _values(f.keys, f.views, tables, of)]
        for fold, at in folds:
            if found := [part for view in fold.views for part in _parts(view, at, tables)]:
                first = _rows(fold.views[0], at, tables)
                named = first if len(first) else pl.DataFrame(at)
                blocks.append(Block(_filled(fold.title, named), found))
        if blocks:
            title, model = ", ".join(map(str, of.values())), str(of.get("model", ""))
            groups.append(Group(title, _with_numbers(blocks), model=model))
    return Section(step.name, step.title, step.note, aligned(groups), step.stage)


def aligned(groups: list[Group]) -> list[Group]:
    """Draw the forests of a section, all of a unit on one axis."""
    every = [block.parts for group in groups for block in group.blocks]
    ends: dict[str, tuple[float, float]] = {}
    for forest in (part.figure for of in every for part in of):
        if isinstance(forest, Forest):
            low, high = ends.get(forest.unit, forest.ends)
            ends[forest.unit] = min(low, forest.ends[0]), max(high, forest.ends[1])
    for of in every:
        of[:] = [
            part._replace(figure=part.figure.draw(ends[part.figure.unit]))
            if isinstance(part.figure, Forest)
            else part
            for part in of
        ]
    return groups


def _with_numbers(blocks: list[Block]) -> list[Block]:
    """Return blocks without tables of no number, and one line that counts these and says why."""
    shown, why, left = list[Block](), Counter[str](), 0
    for block in blocks:
        own_parts = []
        for part in block.parts:
            own = tuple(table for table in part.tables if not table.missing)
            for table in part.tables:
                why.update(table.missing)
                left += bool(table.missing)
            if own or part.figure:
                own_parts.append(part._replace(tables=own))
        shown += [Block(block.title, own_parts)] if own_parts else []
    if not left:
        return shown
    reasons = "; ".join(f"{text} ({n})" for text, n in sorted(why.items()))
    line = f"Without a number, and left out: {left} table{'s' if left > 1 else ''}: {reasons}."
    return [*shown, Block("", [Part(caption=line)])]


def _values(keys: str, views: Sequence[View], tables: Tables, of: Row) -> list[Row]:
    """Return all values of some columns, those of the first view first."""
    names, found = keys.split(), list[Row]()
    for view in views if names else ():
        frame = _rows(view, of, tables)
        if len(frame) and set(names) <= set(frame.columns):
            own = frame.select(names).unique().sort(names).to_dicts()
            found += [values for values in own if values not in found]
    return found if names else [{}]


def _rows(view: View, at: Row, tables: Tables) -> pl.DataFrame:
    return kept(Place(tables, at, "").read(view.source), view.where)


def _parts(view: View, at: Row, tables: Tables) -> Iterator[Part]:
    frame = _rows(view, at, tables)
    if frame.is_empty():
        return
    names = view.facets.split()
    for values, own in parts(frame, *names):
        here = at | dict(zip(names, values, strict=True))
        place = Place(tables, here, ", ".join(str(v) for v in here.values() if v))
        drawn = view.figure(own, place) if view.figure else ""
        found = tuple(table for one in view.listings for table in _listed(one, own, place))
        if drawn or found:
            heading, caption = (_filled(text, own) for text in (view.heading, view.caption))
            if not found:  # else the tables say so
                caption = " ".join(filter(None, (caption, missed(own, view.tests))))
            yield Part(heading, drawn, caption, found)


def _listed(listing: Listing, own: pl.DataFrame, place: Place) -> Iterator[Table]:
    frame = place.read(listing.source) if listing.source else own
    frame = kept(frame, listing.where)
    if frame.is_empty():
        return
    if order := listing.sort.split():
        names, down = [n.lstrip("-") for n in order], [n.startswith("-") for n in order]
        frame = frame.sort(names, descending=down, maintain_order=True)
    for _, part in parts(frame, *listing.split.split()):
        shown = listing.rows(part) if listing.rows else part
        rows = shown.to_dicts() if isinstance(shown, pl.DataFrame) else list(shown)
        if rows:
            made = listed(listing, rows, _filled(listing.caption, part))
            why = sorted({str(row.get("why") or row.get("reason") or "") for row in rows} - {""})
            none = made.numbers and all(
                c in MISSING for r in made.rows for c in r[-len(made.numbers) :]
            )
            missing = tuple(why or ["no value"]) if none else ()
            note = missed(part, listing.numbers, ratio=listing.ratio)
            yield made._replace(note=note, missing=missing)


UNTOLD = "{} miss any effect, or rest on too little to tell which ones they miss."
MISS = "miss effects under {} more than one time in five."
MISS_RATIO = "miss increases under {} and decreases under {} more than one time in five."
MARGIN = "find a margin of {} kept four times in five where nothing differs."
BESIDE = re.compile(r"\bp_(?!bh|bonferroni)(\w+?)(?:_bh)?(?![\w])")  # a p with a name of its own


def missed(frame: pl.DataFrame, numbers: str = "", *, ratio: bool = False) -> str:
    """Return what tests of these rows would miss; nothing where there are none.

    ``numbers``: the columns that are shown: of each p with a name of its own it is told too.
    ``ratio``: as in :class:`Listing`.

    Examples
    --------
    >>> missed(pl.DataFrame({"detectable": [0.1, 0.3, 0.2], "detectable_bh": [0.3, 0.5, 0.4]}))
    'Half of these tests miss effects under 0.2 (adjusted: 0.4) more than one time in five.'
    """
    ends = ("", *(f"_{name}" for name in dict.fromkeys(BESIDE.findall(numbers))))
    return " ".join(filter(None, (_missed(frame, end, ratio=ratio) for end in ends)))


def _missed(frame: pl.DataFrame, end: str, *, ratio: bool) -> str:
    p, one, adjusted = f"p{end}", f"detectable{end}", f"detectable_bh{end}"
    which = f"the tests of {p}" if end else "these tests"
    if not {one, adjusted} <= {*frame.columns} or frame[one].count() == 0:
        tested = p in frame.columns and frame[p].count() > 0
        return UNTOLD.format(which[0].upper() + which[1:]) if tested else ""
    told = frame.drop_nulls(p if p in frame.columns else one)
    within = told.drop_nulls(f"{p}_bh") if f"{p}_bh" in frame.columns else told  # in a family
    ends = [usual(told[one]), *([usual(within[adjusted])] if len(within) else [])]
    if ends[0] is None:
        return UNTOLD.format(f"Half of {which}")
    if not ratio:
        text = MARGIN if end == "_equivalence" else MISS
        return f"Half of {which} " + text.format(_least(ends))
    less = [x and 100 * x / (100 + x) for x in ends]
    return f"Half of {which} " + MISS_RATIO.format(_least(ends, "%"), _least(less, "%"))


def _least(found: Sequence[float | None], unit: str = "") -> str:
    """Write what is found, and in brackets after adjustment, if anything is adjusted."""
    none = "half of them miss any effect or cannot tell"
    one, *rest = (none if x is None else f"{float(f'{x:.2g}'):g}{unit}" for x in found)
    return f"{one} (adjusted: {rest[0]})" if rest else one


def usual(detectable: pl.Series) -> float | None:
    """Return the median of effects that tests would find; None where half would find none.

    Examples
    --------
    >>> usual(pl.Series([0.1, 0.4, None])), usual(pl.Series([0.1, None, None]))
    (0.4, None)
    """
    middle = detectable.cast(pl.Float64).fill_null(float("inf")).median()
    return middle if isinstance(middle, float) and middle < float("inf") else None


def listed(listing: Listing, rows: Sequence[Row], caption: str = "") -> Table:
    """Return rows as a table on the page."""
    words, numbers = (
        [column(spec, listing.digits) for spec in text.split(";") if spec.strip()]
        for text in (listing.words, listing.numbers)
    )
    first = rows[0] if rows else {}
    heads = [[c[0].format(**first) for c in of] for of in (words, numbers)]
    cells = [[write(row) for _, write in (*words, *numbers)] for row in rows]
    return Table(caption, tuple(heads[0]), tuple(heads[1]), cells)


def column(spec: str, digits: int = 2) -> tuple[str, Callable[[Row], str]]:
    """Return head and writer of a column; see :class:`Listing`.

    Examples
    --------
    >>> head, write = column("p_bh")
    >>> head, write({"p_bh": 0.01234})
    ('p adj.', '0.012')
    >>> write({"p_bh": 0.00004})
    '< 0.001'
    >>> column("low..high:1")[1]({"low": None, "high": 2.5})
    '−∞ to 2.5'
    >>> column("{hits} of {n}=hits")[1]({"hits": 3, "n": 4})
    '3 of 4'
    """
    name, _, head = spec.strip().partition("=")
    if "{" in name:
        return head, name.format_map
    name, _, empty = name.partition("?")
    name, _, places = name.partition(":")
    if name == "interval":
        name = "low..high"
    if ".." in name:
        low, _, high = name.partition("..")
        return head or "interval", lambda row: interval(row, int(places or digits), low, high)
    plain = "p adj." if name == "p_bh" else name
    if name == "p" or name.startswith("p_"):
        digits = int(places or (4 if name == "p" else 3))
        return head or plain, lambda row: probability(row[name], digits, empty)
    return head or plain, lambda row: cell(row[name], int(places or digits), empty)


def probability(value: float | None, digits: int, empty: str = "") -> str:
    """Write a p; of a small one that it is small, since no p is 0."""
    if value is not None and 0 < value < 10**-digits:
        return f"< {10**-digits:.{digits}f}"
    return cell(value, digits, empty)


def cell(value: Any, digits: int = 2, empty: str = "") -> str:
    """Write what is in a cell."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value or empty
    return f"{value:,}" if isinstance(value, int) else number(value, digits)


def _filled(text: str, frame: pl.DataFrame) -> str:
    first = {"rows": len(frame)} | frame.row(0, named=True) if "{" in text else {}
    return text.format(**first) if first else text


def number(value: float | None, digits: int = 2) -> str:
    """Write a number; a dash where there is none, and no minus before a zero."""
    return "–" if value is None else f"{round(value, digits) + 0.0:.{digits}f}"


def interval(row: Row, digits: int = 2, low: str = "low", high: str = "high") -> str:
    """Write both ends of an interval of a row."""
    ends = row[low], row[high]
    if ends == (None, None):
        return "–"
    return (
        f"{'−∞' if ends[0] is None else number(ends[0], digits)} to "
        f"{'∞' if ends[1] is None else number(ends[1], digits)}"
    )


def sure(name: str = "p_bh") -> pl.Expr:
    """Return whether an adjusted p is there, and small."""
    return (pl.col(name) <= LEVEL).fill_null(value=False)
