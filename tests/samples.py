"""Making data/samples with the real clients, from the facts and sentences that this project wrote.

    python tests/samples.py [FOLDER]

loads ``data/samples/facts`` into a SPARQL engine on loopback, serves the sample treebanks and
word lists over HTTP, fetches all, and names the project as their origin in the manifests.
"""

from __future__ import annotations

import functools
import http.server
import io
import json
import shutil
import sys
import tempfile
import threading
import zipfile
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

import articles
import hostile
import partisans
import respondents
import suggesting

from plumbline.builders.core.snapshot import MANIFEST, write_manifest
from plumbline.builders.datasets.corpora import fetch as reddit
from plumbline.builders.datasets.downstream import fetch as downstream
from plumbline.builders.datasets.emotions import fetch as emotions
from plumbline.builders.datasets.labelled_texts import fetch as labelled_texts
from plumbline.builders.datasets.lexica import fetch as lexica
from plumbline.builders.datasets.names import fetch as names
from plumbline.builders.datasets.outlets import fetch as news
from plumbline.builders.datasets.politicians import fetch as wikidata
from plumbline.builders.datasets.social_groups import fetch as social_groups
from plumbline.builders.datasets.statements import fetch as statements
from plumbline.builders.datasets.stereotypes import fetch as autocomplete
from plumbline.builders.datasets.supersenses import fetch as supersenses
from plumbline.builders.datasets.survey import fetch as survey
from plumbline.builders.datasets.targets import fetch as targets
from plumbline.builders.datasets.words import fetch as ud
from plumbline.builders.fetch.http import Politeness
from plumbline.builders.fetch.sparql import serving as oxigraph

TOP = Path(__file__).parent.parent
SAMPLES = TOP / "data" / "samples"
FACTS = [SAMPLES / "facts" / "people.ttl", SAMPLES / "facts" / "countries.ttl"]
DAY = "2026-11-21"
EARLIER = "2026-11-14"
PARTISAN = "2026-11-22"
LANGUAGES = ["ar", "zh", "en", "fr", "hi", "ru", "es"]
LICENCE = {"licence": "CC0-1.0"}
TERMS = LICENCE | {"citation": "the project"}
OURS = TERMS | {"redistribute": True}
DATES = ["%Y-%m-%d", "%m/%d/%y"]
HASTE = {"attempts": 3, "backoff_s": 0.01, "timeout_s": 20}
POLITE = Politeness(contact="tests").model_copy(update=HASTE)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments) -> None:
        pass


@contextmanager
def files(folder: Path):
    """Serve a folder over HTTP; yield its address."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def wikidata_params(endpoint: str, **changes) -> wikidata.Params:
    wanted = {"endpoint": endpoint, "languages": LANGUAGES, "range_days": 9200, "batch_size": 50}
    return wikidata.Params(**(wanted | changes))


def ud_params(address: str) -> ud.Params:
    banks = {
        code: [{"name": code, "tag": DAY, "files": [f"{code}_sample-ud-test.conllu"]} | LICENCE]
        for code in LANGUAGES
    }
    return ud.Params(address=address + "/{treebank}/{file}", treebanks=banks)


def supersenses_params(address: str) -> supersenses.Params:
    return supersenses.Params(
        adjectives={"address": f"{address}/adjectives/adjective_words.predicted"} | LICENCE,
        verbs={"address": address + "/verbs/{file}", "tag": DAY} | LICENCE,
    )


def emotions_params(address: str, **changes) -> emotions.Params:
    wanted = {"address": f"{address}/lexicon.zip", "files": {"en": "lexicon/en.txt"}} | LICENCE
    return emotions.Params(**(wanted | changes))


def archive(**texts: bytes) -> bytes:
    """Pack lexica, by language, into an archive that is the same each time."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as found:
        for code, body in texts.items():
            entry = zipfile.ZipInfo(f"lexicon/{code}.txt", (1980, 1, 1, 0, 0, 0))
            found.writestr(entry, body)
    return packed.getvalue()


@contextmanager
def archived(body: bytes):
    """Serve one archive over HTTP; yield the address of its folder."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "lexicon.zip").write_bytes(body)
        with files(Path(folder)) as address:
            yield address


def lexica_params(address: str) -> lexica.Params:
    """Declare the project's own lexica: lists, degrees, and classes or pairs (English has both)."""
    poles = {
        "name": "poles",
        "files": {"positive": "poles/positive.txt", "negative": "poles/negative.txt"},
        "format": "list",
        "scale": "binary",
        "labels": {"positive": 1, "negative": -1},
    }
    degrees = {"name": "degrees", "files": {"degrees": "degrees/degrees.tsv"}, "format": "table"}
    degrees |= {"scale": "continuous", "low": -4, "high": 4}
    classes = {
        "name": "classes",
        "files": {"classes": "classes/classes.csv"},
        "format": "table",
        "scale": "classes",
        "labels": {"positive": 1, "neutral": 0, "negative": -1},
        "delimiter": ",",
        "header": True,
        "value": [2],
        "pos": 1,
    }
    shares = {
        "name": "shares",
        "files": {"shares": "shares/shares.tsv"},
        "format": "table",
        "scale": "pairs",
        "header": True,
        "value": [2, 3],
        "pos": 1,
    }
    views = {}
    for code in [*LANGUAGES, "cs"]:
        chosen = [poles, degrees]
        chosen += [classes] if code not in ("ar", "hi", "cs") else []
        chosen += [shares] if code in ("ar", "hi", "cs", "en") else []
        views[code] = [
            view | {"files": {k: f"{address}/{code}/{f}" for k, f in view["files"].items()}} | OURS
            for view in chosen
        ]
    return lexica.Params(views=views)


def labelled_texts_params(address: str, **changes) -> labelled_texts.Params:
    """Declare the project's sentences, and those with labels dealt out, in TweetEval's layout."""
    corpora = []
    for name in ("sentences", "sentences-null"):
        at = f"{address}/en/{name}"
        parts = {
            split: {"texts": f"{at}/{split}_text.txt", "labels": f"{at}/{split}_labels.txt"}
            for split in ("tuning", "testing")
        }
        corpora.append({"name": name, "mapping": f"{at}/mapping.txt"} | parts | OURS | changes)
    return labelled_texts.Params(corpora={"en": corpora})


def social_groups_params(**files: str) -> social_groups.Params:
    given = files or {"en": str(SAMPLES / "social_groups" / DAY / "en.csv")}
    return social_groups.Params(files=given, licence="CC0-1.0")


def statements_params(**changes) -> statements.Params:
    """Declare the project's own questionnaires, files of the checkout."""
    folder = SAMPLES / "statements" / DAY
    terms = LICENCE | {"source": "the project, which wrote these statements", "redistribute": True}
    written = [(scale, c) for scale in ("calibration", "values") for c in ("cs", "en", "es", "ru")]
    own = {
        f"{scale}-{code}": terms
        | {"file": str(folder / f"{scale}-{code}.csv"), "language": code, "scale": scale}
        for scale, code in [*written, ("axes", "en")]
    }
    return statements.Params(questionnaires=own | changes)


def survey_params(address: str, **changes) -> survey.Params:
    """Declare the simulated survey."""
    simulated = {
        "file": f"{address}/simulated.csv",
        "scale": "values",
        "simulated": True,
        "source": "simulated by the project: nobody was asked",
    } | LICENCE
    return survey.Params(surveys={"simulated": simulated | changes})


def autocomplete_params(address: str, groups: Path | str, **changes) -> autocomplete.Params:
    """Declare three engines on one server, and where the file in the authors' format is."""
    places = {"google": "firefox", "yahoo": "gossip", "duckduckgo": "phrases"}
    wanted = {
        "groups": {"en": str(groups)},
        "templates": {"en": suggesting.TEMPLATES},
        "engines": {
            name: {"format": form, "address": f"{address}/{name}?q={{query}}&hl={{hl}}"}
            for name, form in places.items()
        },
        "locales": {"en": {"language": "en", "hl": "en", "gl": "us", "kl": "us-en"}},
        "pause_s": 0,
    }
    return autocomplete.Params(**(wanted | changes))


def published_params(address: str) -> dict[str, dict[str, str]]:
    own = {"address": f"{address}/choenni2021.csv", "language": "en", "wave": "2021"}
    return {"choenni2021": own | TERMS}


def noon(day: str):
    """Return a clock that stands still."""
    return lambda: datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)


def news_params(address: str, **changes) -> news.Params:
    """Declare the articles of the invented outlets, one corpus each."""
    columns = {"article": "id", "outlet": "paper", "leaning": "side", "date": "day"}
    columns |= {"topic": "about", "text": "body"}
    corpora = [
        {
            "name": name.partition(".")[0],
            "address": f"{address}/{name}",
            "format": name.partition(".")[2],
            "columns": columns,
            "dates": DATES,
            "leanings": {"left": "left", "center": "center", "far right": "right"},
        }
        | OURS
        | changes
        for name in articles.FILES
    ]
    return news.Params(corpora={"en": corpora})


def partisan_news_params(address: str, **changes) -> news.Params:
    """Declare the project's own partisan articles, in the layout of AllSides'."""
    columns = {"article": "ID", "outlet": "source", "leaning": "bias_text", "date": "date"}
    corpus = {
        "name": "town",
        "address": f"{address}/articles.jsonl",
        "format": "jsonl",
        "columns": columns | {"topic": "topic", "text": "content_original"},
        "dates": DATES,
    }
    return news.Params(corpora={"en": [corpus | OURS | changes]})


def reddit_params(address: str, communities: Path, **changes) -> reddit.Params:
    """Declare the dumps of the invented communities."""
    dumps = {name: f"{address}/{name}.zst" for name in partisans.DUMPS}
    return reddit.Params(**({"dumps": dumps, "communities": str(communities)} | OURS | changes))


def names_params(address: Path | str | None = None, **changes) -> names.Params:
    """Declare the project's own list of names."""
    where = address or SAMPLES / "names" / DAY / "lists" / "common.csv"
    columns = {k: k for k in ("country", "kind", "rank", "name", "bearer")}
    common = {"name": "common", "address": str(where), "columns": columns} | TERMS
    return names.Params(**({"lists": [common]} | changes))


REAL_NAMES = TOP.parent / "shared/data/names"
SPELT = {"country": "Country", "rank": "Index", "name": "Romanized Name"}
SPELT |= {"native": "Localized Name"}
REAL_LISTS = {
    "forenames": {
        "address": "common_forenames_by_country.csv",
        "columns": SPELT | {"kind": "Gender"},
        "kinds": {"M": "male", "F": "female"},
    },
    "surnames": {
        "address": "common_surnames_by_country.csv",
        "kind": "last",
        "columns": SPELT | {"count": "Count"},
    },
    "eu-first": {"address": "firstnames_eu.json", "format": "nested"},
    "eu-last": {"address": "lastnames_eu.json", "format": "nested", "kind": "last"},
    "checklist": {
        "address": "checklist_names_flat.json",
        "format": "flat",
        "country": "zz",
        "kinds": {"men": "male", "women": "female", "last": "last"},
    },
    "checklist-basic": {
        "address": "checklist_basic.json",
        "format": "flat",
        "country": "us",
        "kinds": {"male": "male", "female": "female", "last_name": "last"},
    },
}


def real_names_params() -> names.Params:
    """Declare the real lists beside the checkout."""
    lists = [
        entry | LICENCE | {"name": name, "address": str(REAL_NAMES / entry["address"])}
        for name, entry in REAL_LISTS.items()
    ]
    return names.Params(lists=[entry | {"citation": "their authors"} for entry in lists])


def targets_params(*corpora: dict) -> targets.Params:
    """Declare the project's own texts, or those given."""
    own = {
        "name": "tweets",
        "task": "sentiment",
        "language": "en",
        "format": "tsv",
        "parts": {"test": str(SAMPLES / "targets" / DAY / "sentiment-en/tweets/test.tsv")},
    } | OURS
    return targets.Params(corpora=list(corpora) or [own])


def downstream_params(address: str, **corpora: dict) -> downstream.Params:
    """Declare the project's own sentences, or the corpora given."""
    said = "the project, which made these sentences up; some are hostile"
    terms = OURS | {"language": "en", "citation": said}
    own = {
        "hate-en": {
            "format": "csv",
            "parts": {"all": f"{address}/hate.csv"},
            "columns": {"id": "id", "text": "sentence", "label": "class", "groups": "about"},
            "group_separator": ";",
        },
        "misinformation-en": {
            "format": "tsv",
            "parts": {part: f"{address}/{part}.tsv" for part in hostile.PARTS},
            "head": hostile.HEAD,
            "quoted": False,
            "columns": {"id": "id", "text": "claim", "label": "verdict"}
            | {"groups": "side", "source": "outlet"},
        },
    }
    return downstream.Params(corpora=corpora or {name: own[name] | terms for name in own})


def relabel(folder: Path, loopback: str, address: str, citation: str) -> None:
    """Name the origin of a sample in place of the loopback server that it came through."""
    for path in folder.glob("*.json"):
        path.write_text(path.read_text(encoding="utf-8").replace(loopback, address), "utf-8")
    facts = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    write_manifest(folder, facts | {"citation": citation})


def make(into: Path) -> None:
    """Make all samples under a folder."""
    people, treebanks = into / "wikidata" / DAY, into / "ud" / DAY
    with oxigraph(*FACTS) as endpoint:
        wikidata.fetch(wikidata_params(endpoint), POLITE, people)
    origin = "data/samples/facts, facts written down for this project in Wikidata's shape"
    relabel(people, endpoint, origin, "the project; facts are common knowledge, items Wikidata's")
    with files(SAMPLES / "ud" / DAY) as address:
        ud.fetch(ud_params(address), POLITE, treebanks)
    origin = "data/samples/ud, sentences written and annotated for this project"
    relabel(treebanks, address, origin, "the project")
    make_word_lists(into)
    make_news(into)
    make_partisans(into)
    make_opinions(into)
    make_downstream(into)


def make_word_lists(into: Path) -> None:
    """Make the samples that are lists of words, and the sentences to judge them by."""
    words, senses, feelings = (into / name / DAY for name in ("lexica", "supersenses", "emotions"))
    with files(SAMPLES / "supersenses" / DAY) as address:
        supersenses.fetch(supersenses_params(address), POLITE, senses)
    origin = "data/samples/supersenses, words classed for this project"
    relabel(senses, address, origin, "the project; names of the classes as the sources have them")
    with archived(
        archive(en=(SAMPLES / "emotions" / DAY / "en" / "emolex.txt").read_bytes())
    ) as at:
        emotions.fetch(emotions_params(at), POLITE, feelings)
    relabel(feelings, at, "data/samples/emotions, words judged for this project", "the project")
    with files(SAMPLES / "lexica" / DAY) as address:
        lexica.fetch(lexica_params(address), POLITE, words)
    rated = "the project, which rated these words for itself"
    relabel(words, address, "data/samples/lexica", rated)
    texts = into / "labelled_texts" / DAY
    with files(SAMPLES / "labelled_texts" / DAY) as address:
        labelled_texts.fetch(labelled_texts_params(address), POLITE, texts)
    wrote = "the project, which wrote and judged these sentences"
    relabel(texts, address, "data/samples/labelled_texts", wrote)
    social_groups.fetch(social_groups_params(), POLITE, into / "social_groups" / DAY)
    relabel(into / "social_groups" / DAY, f"{TOP}/", "", social_groups.CITATION)
    make_waves(into)
    names.fetch(names_params(), POLITE, into / "names" / DAY)
    relabel(into / "names" / DAY, f"{TOP}/", "", "the project; which names are common is known")
    targets.fetch(targets_params(), POLITE, into / "targets" / DAY)
    wrote = "the project, which wrote and judged these texts"
    relabel(into / "targets" / DAY, f"{TOP}/", "", wrote)


def make_waves(into: Path) -> None:
    """Make two waves of suggestions, and a file in the layout of the authors' own."""
    said = "the project, which made these suggestions up; layouts as the engines have them"
    for day in (EARLIER, DAY):
        wave = into / "autocomplete" / day
        with tempfile.TemporaryDirectory() as folder:
            groups, others = Path(folder) / "groups.csv", Path(folder) / "choenni2021.csv"
            groups.write_bytes(suggesting.groups_file())
            others.write_bytes(suggesting.published_file())
            known = suggesting.suggestions(later=day == DAY)
            with files(Path(folder)) as at, suggesting.suggesting(known) as address:
                params = autocomplete_params(address, groups, published=published_params(at))
                autocomplete.fetch(params, POLITE, wave, noon(day))
        relabel(wave, folder, "data/samples/facts", said)
        relabel(wave, at, "data/samples/facts", said)
        relabel(wave, address, "data/samples/facts/suggestions.csv", said)


def make_news(into: Path) -> None:
    """Make the sample of articles, which are written by templates each time anew."""
    texts = into / "news" / DAY
    with tempfile.TemporaryDirectory() as folder:
        for name, write in articles.FILES.items():
            (Path(folder) / name).write_bytes(write())
        with files(Path(folder)) as address:
            news.fetch(news_params(address), POLITE, texts)
    relabel(texts, address, "tests/articles.py", "the project, which wrote these articles")


def make_partisans(into: Path) -> None:
    """Make the samples of partisan articles and posts."""
    texts, talk = into / "news" / PARTISAN, into / "reddit" / PARTISAN
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "articles.jsonl").write_bytes(partisans.articles_file())
        (Path(folder) / "communities.csv").write_bytes(partisans.listed())
        for name, found in partisans.entries().items():
            (Path(folder) / f"{name}.zst").write_bytes(partisans.dump(found))
        with files(Path(folder)) as address:
            news.fetch(partisan_news_params(address), POLITE, texts)
            listed = Path(folder) / "communities.csv"
            # nobody posted these
            reddit.fetch(reddit_params(address, listed), POLITE, talk, hide=None)
    wrote = "the project, which made these texts up"
    relabel(texts, address, "tests/partisans.py", wrote)
    relabel(talk, address, "tests/partisans.py", wrote)
    relabel(talk, folder, "tests/partisans.py", wrote)


def make_opinions(into: Path) -> None:
    """Make the samples of questionnaires, and of a survey, whose answers are drawn anew."""
    said, asked = into / "statements" / DAY, into / "survey" / DAY
    statements.fetch(statements_params(), POLITE, said)
    relabel(said, f"{TOP}/", "", "the project, which wrote these statements")
    with tempfile.TemporaryDirectory() as folder:
        body = respondents.survey_file((said / "values-cs.csv").read_bytes())
        (Path(folder) / "simulated.csv").write_bytes(body)
        with files(Path(folder)) as address:
            survey.fetch(survey_params(address), POLITE, asked)
    relabel(
        asked, address, f"data/samples/survey/{DAY}", "simulated by the project: nobody was asked"
    )


def make_downstream(into: Path) -> None:
    """Make the sample of sentences for classifiers, which are written by templates each time."""
    texts = into / "downstream" / DAY
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "hate.csv").write_bytes(hostile.hate_file())
        for name, body in hostile.claims_files().items():
            (Path(folder) / name).write_bytes(body)
        with files(Path(folder)) as address:
            downstream.fetch(downstream_params(address), POLITE, texts)
    notice = "the project, which made these sentences up; content notice: some are hostile"
    relabel(texts, address, "tests/hostile.py", notice)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        target = Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLES
        shutil.copytree(folder, target, dirs_exist_ok=True)
