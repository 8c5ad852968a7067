"""Prompt templates, one module per study."""

from pydantic import AfterValidator

BARE = "bare"  # the template that contains only the name: Stańczak et al. (2023), section 3
TIMES = ("", "once", "twice")


def gaps(*once: str, **times: int) -> AfterValidator:
    """Return a validator of templates that requires each gap the given number of times."""
    counts = dict.fromkeys(once, 1) | times
    requirements = ", ".join(f"{gap} {TIMES[n]}" if n else f"no {gap}" for gap, n in counts.items())

    def check(text: str) -> str:
        if any(text.count(gap) != number for gap, number in counts.items()):
            raise ValueError(f"{text!r} must have {requirements}")
        return text

    return AfterValidator(check)
