"""What the Hub takes for metadata of a dataset card, as its own sources list it.

LICENCES: huggingface/hub-docs, docs/hub/repositories-licenses.md, without those of single models.
TASKS: huggingface/huggingface.js, packages/tasks/src/pipelines.ts, those of texts and tables.
CREATORS, SOURCES, SIZES, MULTILINGUALITY: as ``huggingface_hub.DatasetCardData`` says of its
arguments. LANGUAGES: ISO 639-1 and 639-3, as far as CLDR names them.
"""

import re

from babel import Locale


def words(text: str) -> list[str]:
    return text.split()


LICENCES = set(
    words("""
    apache-2.0 mit openrail bigscience-openrail-m creativeml-openrail-m bigscience-bloom-rail-1.0
    bigcode-openrail-m afl-3.0 artistic-2.0 bsl-1.0 bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear
    c-uda cc cc0-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0
    cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0
    cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cdla-sharing-1.0 cdla-permissive-1.0 cdla-permissive-2.0 ecl-2.0
    epl-1.0 epl-2.0 etalab-2.0 eupl-1.1 agpl-3.0 gfdl gpl gpl-2.0 gpl-3.0 lgpl lgpl-2.1 lgpl-3.0 isc
    lppl-1.3c ms-pl mpl-2.0 odc-by odbl openrail++ osl-3.0 postgresql ofl-1.1 ncsa unlicense zlib
    pddl lgpl-lr unknown other
    """)
)
TASKS = {
    "text-classification": set(
        words("""
        acceptability-classification entity-linking-classification fact-checking
        intent-classification language-identification multi-class-classification
        multi-label-classification multi-input-text-classification natural-language-inference
        semantic-similarity-classification sentiment-classification topic-classification
        semantic-similarity-scoring sentiment-scoring sentiment-analysis hate-speech-detection
        text-scoring
        """)
    ),
    "token-classification": set(
        words("""
        named-entity-recognition part-of-speech parsing lemmatization word-sense-disambiguation
        coreference-resolution
        """)
    ),
    "text-generation": {
        "dialogue-modeling",
        "dialogue-generation",
        "conversational",
        "language-modeling",
    },
    "fill-mask": {"slot-filling", "masked-language-modeling"},
    "tabular-classification": {
        "tabular-multi-class-classification",
        "tabular-multi-label-classification",
    },
    "feature-extraction": set(),
}
CREATORS = {"found", "crowdsourced", "expert-generated", "machine-generated", "other"}
SOURCES = {"original", "extended"}
SIZES = words("""
    n<1K 1K<n<10K 10K<n<100K 100K<n<1M 1M<n<10M 10M<n<100M 100M<n<1B 1B<n<10B 10B<n<100B 100B<n<1T
    n>1T
""")
MULTILINGUALITY = {"monolingual", "multilingual", "translation", "other"}
LANGUAGES = {code for code in Locale("en").languages if re.fullmatch("[a-z]{2,3}", code)}
FREE = ("pretty_name", "tags", "license_name", "license_link", "configs", "dataset_info")
KNOWN = {  # by key: what its values may be
    "license": LICENCES,
    "language": LANGUAGES,
    "task_categories": set(TASKS),
    "task_ids": set.union(*TASKS.values()),
    "annotations_creators": CREATORS | {"no-annotation"},
    "language_creators": CREATORS,
    "source_datasets": SOURCES,
    "multilinguality": MULTILINGUALITY,
    "size_categories": set(SIZES),
}


def faults(front: dict) -> list[str]:
    """Return what the Hub would refuse, or not understand, in a card's metadata."""
    found = [
        f"{key}: {value}"
        for key, values in KNOWN.items()
        if key in front
        for value in (front[key] if isinstance(front[key], list) else [front[key]])
        if value not in values
    ]
    ours = set().union(*(TASKS.get(task, ()) for task in front.get("task_categories", ())))
    found += [f"task_ids: {t} of no category" for t in front.get("task_ids", ()) if t not in ours]
    if "license" not in front or "pretty_name" not in front:
        found.append("license and pretty_name are needed")
    if front.get("license") == "other" and not re.fullmatch(
        r"[a-z0-9.-]+", front.get("license_name", "")
    ):
        found.append("license_name: an id in small letters is needed where the licence is other")
    found += [f"tag: {tag}" for tag in front.get("tags", ()) if not re.fullmatch(r"[\w.-]+", tag)]
    keys = [
        key for key in front if key not in (*KNOWN, *FREE) and not key.startswith("extra_gated")
    ]
    return found + [f"{key}: not a key of the Hub's" for key in keys]
