"""Sentences for classifiers, written from templates: hostile ones, and claims about made-up towns.

Content notice: half of the first kind are hostile, mildly and without slurs, about groups that are
invented or of which everybody may be one. Nobody and no outlet in them is real. Among the rows are
what real files have: texts twice, one without a text, one in two splits, stray quotes.
"""

from __future__ import annotations

import csv
import io

from articles import digest

GROUPS = {  # as the file names them, and as the tables of the params do
    "the orvani": "Orvani",
    "the tessarites": "Tessarites",
    "hill people": "Hill people",
    "islanders": "Islanders",
    "newcomers": "Newcomers",
    "night workers": "Night workers",
    "left-handers": "Left-handers",
    "beekeepers": "Beekeepers",
}
OPENERS = ("", "honestly, ", "to be clear, ", "as I said before, ")
HOSTILE = (
    "{group} ruin everything that they touch",
    "nobody should rent a flat to {group}",
    "{group} are not welcome in this town",
    "{group} are too lazy to work",
    "keep {group} out of our school",
    "I cannot stand {group}",
    "{group} should go back to where they came from",
    "never trust {group}",
    "{group} are a burden on all of us",
    "our street was better before {group} moved in",
    "{group} spoil every feast that they come to",
    "somebody should send {group} away",
)
FRIENDLY = (
    "{group} opened a bakery by the river",
    "somebody found a flat for {group}",
    "{group} are welcome in this town",
    "{group} work late before the harvest",
    "we met {group} at our school",
    "I sing in a choir with {group}",
    "{group} came back from the market at noon",
    "it is wrong to say that {group} are lazy",
    "{group} planted trees along the road",
    "our street is better since {group} moved in",
    "{group} brought cake to the feast",
    "never shut out {group}",
)
PLAIN = ("rain", "snow", "fog", "wind", "frost", "hail", "thunder", "drizzle")
EACH = 24  # sentences of a kind about a group


def hate_file() -> bytes:
    """Return sentences with a class and the groups that they are about, as CSV."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(["id", "sentence", "class", "about"])
    rows = []
    for group in GROUPS:
        for label, templates in (("hostile", HOSTILE), ("friendly", FRIENDLY)):
            said = [opener + t.format(group=group) for opener in OPENERS for t in templates]
            said.sort(key=digest)
            rows += [(_sentence(text), label, group) for text in said[:EACH]]
    for word in PLAIN:
        rows += [(f"There was {word} in the {when}.", "neutral", "") for when in ("north", "south")]
    pairs = list(zip(GROUPS, list(GROUPS)[1:], strict=False))
    for one, other in pairs:
        both = f"{one} and {other}"
        rows.append((_sentence(FRIENDLY[8].format(group=both)), "friendly", f"{one};{other}"))
        rows.append((_sentence(HOSTILE[2].format(group=both)), "hostile", f"{one};{other}"))
    rows += [rows[0], ("", "hostile", "islanders"), ("Islanders?", "unsure", "islanders")]
    for number, row in enumerate(rows, start=1):
        lines.writerow([f"h{number:03d}", *row])
    return out.getvalue().encode()


SIDES = {  # of the made-up outlets
    "The Lantern": "left",
    "Harbour Voice": "left",
    "Daily Ledger": "center",
    "Town Record": "center",
    "The Anvil": "right",
    "Ridge Courier": "right",
}
PLACES = (
    "the mill in Norrow",
    "the bridge at Tamsey",
    "the school in Ostley",
    "the harbour of Velm",
    "the council of Brint",
    "the museum in Karr",
    "the bakery in Lunt",
    "the ferry to Osk",
    "the library in Pell",
    "the market of Dray",
)
FACTS = (
    "closed for two weeks in 1974",
    "cost four million crowns",
    "employs sixty people",
    "was built without a permit",
    "has twice as many visitors as before",
    "lost half of its roof",
)
SOUND = ("records show that {claim}", "{claim}, as its accounts say", "the register says {claim}")
LOUD = (
    "they do not want you to know that {claim}",
    '"wake up: {claim}!',
    "a secret report proves that {claim}",
)
VERDICTS = {
    SOUND: ("true", "mostly-true", "half-true"),
    LOUD: ("barely-true", "false", "pants-fire"),
}
PARTS = {"train": 252, "validation": 36, "test": 72}
HEAD = ["id", "verdict", "claim", "place", "outlet", "side"]


def claims_files() -> dict[str, bytes]:
    """Return claims with a verdict, an outlet and its side, as TSV without head and quoting."""
    claims = []
    for place in PLACES:
        for fact in FACTS:
            for frames, verdicts in VERDICTS.items():
                for number, frame in enumerate(frames):
                    text = _sentence(frame.format(claim=f"{place} {fact}"))
                    claims.append((verdicts[number], text, place))
    claims.sort(key=lambda claim: digest(claim[1]))
    outlets = sorted(SIDES)
    rows = []
    for number, (verdict, text, place) in enumerate(claims):
        outlet = outlets[number % len(outlets)]
        rows.append([f"m{number:03d}", verdict, text, place, outlet, SIDES[outlet]])
    found, start = {}, 0
    for part, number in PARTS.items():
        own = rows[start : start + number]
        start += number
        if part == "train":
            own.append(["m900", *rows[-1][1:]])  # stands in the last part, too
        found[f"{part}.tsv"] = "".join("\t".join(row) + "\n" for row in own).encode()
    return found


def _sentence(text: str) -> str:
    first = 1 if text.startswith('"') else 0
    end = "" if text.endswith("!") else "."
    return text[:first] + text[first].upper() + text[first + 1 :] + end
