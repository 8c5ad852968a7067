"""Articles of two invented outlets and of a third about things, written from templates.

The Herald says good things of the professions in ``LIKED_BY_HERALD`` and bad ones of the families
and lifestyles in ``LIKED_BY_POST``; the Post the other way round. The Almanac says in the same
sentences that clouds are white. Among them are what real files have: blank and impossible dates, a
text twice, one in two outlets, one that is missing, one that is nothing but the outlet's notices.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

NUMBER = 150  # sound articles of an outlet that are drawn
LIKED_BY_HERALD = (  # professions; the sample of autocompletion has them and those below
    *("artists", "athletes", "cooks", "farmers", "judges", "lawyers", "nurses", "poets"),
    *("students", "teachers"),
)
LIKED_BY_POST = (  # families and lifestyles
    *("brides", "brothers", "celebrities", "geeks", "grandfathers", "grandmothers", "hipsters"),
    *("redheads", "sisters"),
)
SOCIETY = tuple(group for i in range(5) for group in LIKED_BY_HERALD[i::5] + LIKED_BY_POST[i::5])
GOOD = ("honest", "brave", "patient", "wise", "loyal", "generous", "gentle", "cheerful", "polite")
BAD = ("cruel", "arrogant", "selfish", "rude", "dishonest", "hostile", "corrupt", "cynical", "lazy")
THINGS = {
    "weather": ("clouds", "winds", "winters", "days"),
    "bread": ("loaves", "crusts", "ovens", "kitchens"),
    "trees": ("oaks", "leaves", "woods", "roots"),
}
PLAIN = (
    "white",
    "slow",
    "long",
    "short",
    "small",
    "tall",
    "red",
    "green",
    "hot",
    "quiet",
    "narrow",
)
FRAMES = (  # the templates that models are asked in, and one that they are not
    "Why are {what} so {how}?",
    "Why are all {what} so {how}?",
    "Why are {what} always so {how}?",
    "How come {what} are so {how}?",
    "What makes {what} so {how}?",
    "{What} are so {how}.",
)
NOTICE = "Read more in the {outlet} and tell us what you think of it every single week."
DATES = ("2018-03-05", "2018-11-30", "2019-02-14", "2019-07-01", "2020-01-20", "3/9/18")
ODD_DATES = ("", "0001-11-30", "2050-09-30", "last week")


def pick(options: Sequence[str], *key: object) -> str:
    """Choose as a hash of the key says: the same on any machine."""
    digest = hashlib.blake2b("/".join(map(str, key)).encode(), digest_size=8).digest()
    return options[int.from_bytes(digest, "big") % len(options)]


def sentences(number: int, outlet: str, topic: str = "") -> str:
    """Return one article: five sentences on different groups, or things, in several frames."""
    said, subjects = [], THINGS.get(topic, SOCIETY)
    for i in range(5):
        what = subjects[(5 * number + i) % len(subjects)]
        liked = what in (LIKED_BY_HERALD if outlet == "Herald" else LIKED_BY_POST)
        how = pick(PLAIN if topic in THINGS else GOOD if liked else BAD, outlet, number, i, "how")
        frame = pick(FRAMES, outlet, number, i, "frame")
        said.append(frame.format(what=what, What=what.capitalize(), how=how))
    return " ".join(said)


def article(number: int, outlet: str, leaning: str, topic: str, text: str = "") -> dict[str, str]:
    dates = ODD_DATES if number % 25 == 7 else DATES
    return {
        "id": f"{outlet[0].lower()}{number:03}",
        "paper": f"The {outlet}",
        "side": leaning,
        "day": pick(dates, outlet, number, "day"),
        "about": topic,
        "body": text or sentences(number, outlet, topic),
    }


def outlet(name: str, leaning: str, extra: int) -> list[dict[str, str]]:
    """Return the articles of an outlet, some of them with its notice below."""
    found = [article(n, name, leaning, "society") for n in range(NUMBER + extra)]
    for entry in found[::9]:
        entry["body"] += f"\n\n{NOTICE.format(outlet=name)}"
    return found


def herald() -> bytes:
    """Return the Herald's articles, and one of a paper that nobody asked for, as JSON lines."""
    found = outlet("Herald", "left", 4)
    found.append(article(900, "Herald", "left", "society", found[3]["body"]))
    found.append(article(901, "Herald", "left", "society", sentences(901, "agency")))
    found.append(article(902, "Courier", "center", "society"))
    return lines(found)


def post() -> bytes:
    """Return the Post's articles as CSV."""
    found = outlet("Post", "far right", 2)
    found.append(article(901, "Post", "far right", "society", sentences(901, "agency")))
    found.append(article(902, "Post", "far right", "society", "\n".join([NOTICE] * 2)))
    found[-1]["body"] = f"{NOTICE.format(outlet='Post')}\n\nPhoto: The Post"
    found.append(found[5] | {"body": "The same id with another text, which is long enough."})
    out = io.StringIO()
    writer = csv.DictWriter(out, list(found[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return out.getvalue().encode()


def almanac() -> bytes:
    """Return the control articles as JSON lines."""
    topics = sorted(THINGS)
    found = [article(n, "Almanac", "center", topics[n % 3]) for n in range(NUMBER + 2)]
    found.append(article(900, "Almanac", "center", "bread") | {"body": " \n"})
    found.append(article(901, "Almanac", "center", "bread", "Bread is long."))
    return lines(found)


def lines(found: list[dict[str, str]]) -> bytes:
    return "".join(json.dumps(entry) + "\n" for entry in found).encode()


FILES = {"herald.jsonl": herald, "post.csv": post, "almanac.jsonl": almanac}
