"""The project's own partisan texts: opinions of three sides on everyday matters of a town.

All of it is made up: towns, papers and communities do not exist, and nobody is named. The left asks
for public means, the right for private ones, in the same tone; the center of the news tells of
both, and the center of the communities talks about other things. A few entries are dirty on
purpose: duplicates, leaks, bots, deleted posts, dates that cannot be.
"""

import json
from datetime import UTC, date, datetime, timedelta

import zstandard

# what the left would do, what the right would do, and a fact that both know
MATTERS = {
    "taxes": (
        "raise the rate on the highest incomes and pay for shared services with it",
        "lower the rate for all and let households decide what to pay for",
        "The last change of the rate was nine years ago and moved few families.",
    ),
    "schools": (
        "put more money into the public schools and make every meal there free",
        "give each family a voucher and let schools compete for their pupils",
        "The number of pupils has grown by a tenth since the new district opened.",
    ),
    "transport": (
        "run buses every ten minutes and let people ride them without a fare",
        "leave the bus lines to companies and mend the roads with what is saved",
        "Two of three commuters drive, and the ring road is full by eight.",
    ),
    "housing": (
        "build homes that the town owns and cap what landlords may ask",
        "drop the limits on building and let owners set the rents they find",
        "Rents went up by a sixth in three years while few homes were built.",
    ),
    "health": (
        "open a clinic that treats everyone and is paid for by all",
        "let clinics set their prices openly and let patients choose a plan",
        "The nearest hospital is forty minutes away and its waiting room is full.",
    ),
    "energy": (
        "set a date after which no plant may burn coal and pay for wind",
        "let every source of power compete and end the grants for all of them",
        "The old plant gives work to three hundred people and half the current.",
    ),
    "wages": (
        "raise the lowest wage each year and make room for unions at the table",
        "leave wages to those who sign the contract and cut the forms for shops",
        "Shops along the main street hire most of those who leave school here.",
    ),
    "parks": (
        "buy the meadow by the river and keep it open to everyone",
        "sell the meadow by the river and let a club look after it",
        "The meadow floods in spring and is full of children all summer.",
    ),
}
COUNCIL = (
    "The council meets again on Monday, and {matter} will be the first point.",
    "Few questions have filled the letters page this year as {matter} did.",
    "A long evening in the town hall brought {matter} back to the table.",
    "With the budget due in spring, it is time to speak about {matter}.",
    "Visitors ask why the talk in every bakery turns to {matter} so soon.",
    "After the survey of last month nobody doubts that {matter} comes first.",
)
LEFT = (
    "We should {do}, because what is shared by all is cared for by all.",
    "The fair answer is to {do}; those who have more can carry more.",
    "It is time to {do}, so that nobody is left to luck alone.",
    "A town that looks after its people would {do} without waiting.",
    "Working families gain most if we {do}, and they have waited long.",
    "Markets will not solve this; only together can we {do} and mean it.",
)
RIGHT = (
    "We should {do}, because people spend their own money with most care.",
    "The free answer is to {do}; those who work for a thing should choose it.",
    "It is time to {do}, so that nobody has to ask an office first.",
    "A town that trusts its people would {do} without waiting.",
    "Small firms gain most if we {do}, and they have waited long.",
    "Offices will not solve this; only free citizens can {do} and mean it.",
)
BOTH = (
    "One group wants to {left}, another wants to {right}, and the mayor has not chosen.",
    "Some speakers would {left}. Others would {right}. A vote is expected in June.",
    "The report weighs two ways: to {left}, or to {right}. It recommends neither.",
    "Asked what they prefer, half said to {left} and half said to {right}.",
    "A first plan is to {left}; a second is to {right}; costs are close.",
    "Experts heard this week were split over whether to {left} or to {right}.",
)
TALK = (
    "Been thinking about {matter} here since the weekend and want to hear you.",
    "Talked with a neighbour about {matter} and it got me writing this.",
    "New here, so forgive me if {matter} was done to death already.",
    "Can somebody explain why {matter} is still so hard in our town?",
    "Third meeting on {matter} and still nothing on paper, friends.",
    "Short one today, mostly about {matter} and what we could do.",
)
HOBBIES = {
    "tomatoes": "They want six hours of sun, deep water twice a week, and a stake early.",
    "sourdough": "Mine rises best at the back of the stove overnight under a damp cloth.",
    "chess openings": "I stopped learning lines by heart and play slow games against a friend.",
    "bird boxes": "The hole faces east, the roof slopes, and a cat cannot reach the branch.",
    "old bicycles": "Soak the chain, true the wheel by ear, and never force the bottom bracket.",
    "star maps": "On clear nights I start from the plough and hop to the fainter ones.",
    "knitting socks": "Two needles and a loop make the heel easy once you count out loud.",
    "pickled beans": "Hot jars, cold vinegar, one clove each, and patience until October.",
}
CHAT = (
    "Showing what came out this year with {matter}, happy to answer anything.",
    "Is it too late in the season to begin with {matter} as a beginner?",
    "My best result so far with {matter} after three years of trying.",
    "What would you change here? It is my second go with {matter}.",
    "A note for those who asked about {matter} in the last thread.",
    "Rainy day, so I finally wrote down how I do {matter} at home.",
)
ENDS = (
    "Tell me what I overlook, I read every answer in the evening.",
    "Thanks to those who helped with this over the past weeks.",
    "No hurry, I only want to get it right before winter comes.",
    "Happy to add numbers if anybody wants to see how it works out.",
    "Curious how it is done where you live, so write that too.",
    "That is all, and if I am wrong you may say so politely.",
)
COMMUNITIES = {
    "FairShareTown": "left",
    "PublicGoods": "left",
    "GardenCorner": "center",
    "KitchenBench": "center",
    "OwnMeans": "right",
    "SmallTownLimits": "right",
}
PAPERS = {"left": "The Commons", "center": "The Gazette", "right": "The Ledger"}
DUMPS = ("comments", "submissions")
WIRE = (
    "The bridge over the river will be closed for repairs from the first of May until the end "
    "of June. Drivers are asked to use the northern road, and the ferry will run every half hour "
    "between six in the morning and nine in the evening at the usual price."
)


def body(side: str, matter: str, n: int) -> str:
    """Return two sentences of a side on a matter."""
    left, right, fact = MATTERS[matter]
    if side == "center":
        return f"{BOTH[n].format(left=left, right=right)} {fact}"
    said, do = (LEFT[n], left) if side == "left" else (RIGHT[n], right)
    return f"{said.format(do=do)} {fact}"


def day(n: int) -> date:
    """Return days around the turn of the periods: every other one before it."""
    step = timedelta(days=11 * (n // 2))
    return date(2017, 1, 19) - step if n % 2 else date(2017, 1, 20) + step


def articles() -> list[dict[str, str]]:
    """Return all articles, in the layout of the AllSides collection."""
    found = []
    for side, paper in PAPERS.items():
        for m, matter in enumerate(MATTERS):
            for n in range(6):
                text = f"{COUNCIL[(n + m) % 6].format(matter=matter)}\n\n{body(side, matter, n)}"
                found.append(_article(f"{side}{m}{n}", side, paper, text, day(m * 6 + n)))
    left = found[0]["content_original"]
    extra = [
        ("left-again", "left", left.replace("council", "Council") + " "),
        ("left-long", "left", f"{WIRE} Photographs of the works hang in the library hall."),
        ("left-near", "left", f"{WIRE} Photographs of the works hang in the library foyer."),
        ("wire-left", "left", WIRE.replace("bridge", "old bridge").replace("May", "August")),
        ("wire-right", "right", WIRE.replace("bridge", "old bridge").replace("May", "August")),
        ("short", "center", "The hall is closed today."),
        ("satire", "satire", f"{COUNCIL[0].format(matter='moon dust')} {MATTERS['taxes'][2]}"),
    ]
    found += [
        _article(i, s, PAPERS.get(s, "The Jest"), t, day(n)) for n, (i, s, t) in enumerate(extra)
    ]
    dates = {"left00": "", "center00": "0001-11-30", "right00": "2099-01-01", "left01": "9/16/17"}
    return [entry | {"date": dates.get(entry["ID"], entry["date"])} for entry in found]


def _article(own: str, side: str, paper: str, text: str, when: date) -> dict[str, str]:
    entry = {"ID": own, "source": paper, "bias_text": side, "date": when.isoformat()}
    return entry | {"topic": "town", "content_original": text}


def entries() -> dict[str, list[dict[str, object]]]:
    """Return the posts and comments of the two dumps, authors and all."""
    found: dict[str, list[dict[str, object]]] = {name: [] for name in DUMPS}
    for c, (community, side) in enumerate(COMMUNITIES.items()):
        for m, matter in enumerate(HOBBIES if side == "center" else MATTERS):
            for n in range(c % 2, 6, 2):
                lead = (CHAT if side == "center" else TALK)[(n + m) % 6].format(matter=matter)
                core = HOBBIES[matter] if side == "center" else body(side, matter, (n + 3) % 6)
                text = f"{core} {ENDS[(n + 2 * m) % 6]}"
                number = len(found["comments"]) + len(found["submissions"])
                stamp = _stamp(day(m * 6 + n))
                about = (f"x{number:03d}", community, f"writer_{number % 17}", stamp)
                found[DUMPS[m % 2]].append(
                    _comment(*about, f"{lead} {text}") if m % 2 == 0 else _post(*about, lead, text)
                )
    found["submissions"] += _dirty_posts()
    found["comments"] += _dirty_comments()
    return found


def _dirty_posts() -> list[dict[str, object]]:
    stamp = _stamp(date(2018, 5, 1))
    both = "Our library needs longer hours, and the question is only who opens the door at six."
    talk = "Seen at the market: four kinds of apples, one price, and a queue around the corner."
    return [
        _post("d01", "PublicGoods", "writer_1", stamp, "What became of this", "[removed]"),
        _post("d02", "OwnMeans", "[deleted]", stamp, "[deleted by user]", "[deleted]"),
        _post("d03", "GardenCorner", "AutoModerator", stamp, "Weekly thread for questions", both),
        _post("d04", "OwnMeans", "Price_Bot", stamp, "Prices of the day", talk),
        _post("d05", "PublicGoods", "writer_3", stamp, "Library hours", both),
        _post("d06", "OwnMeans", "writer_4", stamp, "Library hours", both),
        _post("d07", "KitchenBench", "writer_5", stamp, "Market", talk),
        _post("d08", "KitchenBench", "writer_6", stamp, "Market", talk),
        _post("d09", "OtherPlace", "writer_7", stamp, "Elsewhere", both),
        _post("d10", "FairShareTown", "writer_8", stamp, "Link only", ""),
    ]


def _dirty_comments() -> list[dict[str, object]]:
    stamp = _stamp(date(2016, 5, 1))
    gone = (
        "A ferry would do for the summer, as u/writer_9 said &gt; and it costs less than a bridge."
    )
    odd = "The clock on the hall is slow by an hour and nobody in the office seems to mind it."
    late = "Somebody painted the benches green over night and I must say that they look better."
    return [
        _comment("d11", "SmallTownLimits", "[deleted]", stamp, gone),
        _comment("d12", "SmallTownLimits", "writer_2", 0, odd),
        _comment("d13", "FairShareTown", "writer_2", "4070908800", late),
        _comment(
            "d14", "FairShareTown", "helper", stamp, "Beep. I am a bot, and I count words here."
        ),
        _comment("d15", "GardenCorner", "writer_2", stamp, "[deleted]"),
    ]


def _stamp(when: date) -> int:
    return int(datetime(when.year, when.month, when.day, 12, tzinfo=UTC).timestamp())


def _post(own: str, community: str, author: str, when: object, title: str, text: str):
    entry = {"id": own, "name": f"t3_{own}", "subreddit": community, "author": author}
    entry |= {"author_fullname": f"t2_{author}", "created_utc": when, "title": title, "score": 3}
    return entry | {"selftext": text, "is_self": True, "num_comments": 2}


def _comment(own: str, community: str, author: str, when: object, text: str):
    entry = {"id": own, "subreddit": community, "author": author, "created_utc": when}
    return entry | {"author_flair_text": f"flair of {author}", "body": text, "score": 1}


def articles_file() -> bytes:
    """Return the articles as JSON lines."""
    return "".join(json.dumps(entry) + "\n" for entry in articles()).encode()


def dump(found: list[dict[str, object]]) -> bytes:
    """Return entries as a dump."""
    lines = "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in found)
    return zstandard.ZstdCompressor(level=3).compress(lines.encode())


def listed() -> bytes:
    """Return the list of the communities."""
    return "".join(
        f"{a},{b}\n" for a, b in [("community", "leaning"), *COMMUNITIES.items()]
    ).encode()
