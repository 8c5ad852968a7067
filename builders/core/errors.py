"""The one exception that a user is meant to read."""

from __future__ import annotations


class Problem(Exception):  # noqa: N818 - the field's word for a user's problem is not "error"
    """Something a user can mend: what is wrong, where, and what to do, in one sentence.

    Commands print it without a traceback and exit with status 1.
    """
