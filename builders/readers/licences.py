"""Licences by their SPDX ids: which of them let anybody have a dataset that was made of a source.

What is on no such list is not guessed at: a licence in words is for a person to read.
"""

from __future__ import annotations

import re

FREE = ("CC0-1.0", "PDDL-1.0", "Unlicense", "0BSD", "MIT-0")  # which ask for nothing
# Those that forbid changes are not among them: a dataset changes what it is made of.
OPEN = re.compile(
    rf"{'|'.join(map(re.escape, FREE))}|CC-BY(-NC)?(-SA)?-(1\.0|2\.0|2\.5|3\.0|4\.0)(-IGO)?"
    r"|MIT|Apache-2\.0|BSD-[23]-Clause|ISC|Zlib|NCSA|PostgreSQL|MPL-2\.0|EPL-[12]\.0|EUPL-1\.[012]"
    r"|Artistic-2\.0|OFL-1\.1|GFDL-1\.[123](-only|-or-later)?|[AL]?GPL-[123]\.[01](-only|-or-later|\+)?"
    r"|ODbL-1\.0|ODC-By-1\.0|CDLA-(Permissive-[12]\.0|Sharing-1\.0)|C-UDA-1\.0|DL-DE-BY-2\.0"
    r"|etalab-2\.0|OGL-UK-[123]\.0|OGL-Canada-2\.0|NLOD-[12]\.0",
    re.IGNORECASE,
)
NOT_PUBLISHED = " (rows not to be published)"  # behind the licence of such a source


def each(stated: str) -> list[str]:
    """Return the licences of several things, which may be stated in one line.

    Examples
    --------
    >>> each("a: MIT; b-2: CC-BY-4.0 AND CC0-1.0")
    ['MIT', 'CC-BY-4.0', 'CC0-1.0']
    """
    found = (re.sub(r"^[\w.-]+: ", "", one.strip()) for one in re.split(r"; | AND ", stated))
    return list(dict.fromkeys(found))


def is_open(stated: str) -> bool:
    """Tell whether all of what is stated are SPDX ids of open licences."""
    return all(OPEN.fullmatch(one) for one in each(stated))


def exceeds(licence: str, stated: list[str]) -> bool:
    """Tell whether a licence allows more than all of those that are stated do."""
    free = {name.lower() for name in (licence, *FREE)}
    return any(one.lower() not in free for text in stated for one in each(text))
