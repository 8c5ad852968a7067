"""Use the scorers as models of lm-evaluation-harness, mainly to evaluate masked models.

The harness scores causal and sequence-to-sequence models, but not masked ones. ``python -m
plumbline.lm_eval`` runs its command line with two additional models, ``plumbline-mlm`` and
``plumbline-causal``, which are registered here because the harness has no entry points for models.

A request consists of a context and a continuation. Its log-likelihood is the sum of the
log-probabilities of the continuation's tokens, in nats. A masked model scores each token given the
full text, including the rest of the continuation. The result is a pseudo-log-likelihood, which is
not a log-probability and cannot be compared with that of a causal model. As in the harness, spaces
at the end of a context belong to the continuation, and a request is greedy if each token is the
most probable one at its position.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from plumbline.builders.core.cli import FINE, WRONG
from plumbline.builders.core.errors import UserError, optional_library
from plumbline.models import find
from plumbline.workspace import WORLDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from plumbline.probes.models.scorer import Score

DTYPES = ("float32", "float64", "bfloat16")


class Bridge:
    """A model for the harness that returns the log-likelihoods computed by a scorer.

    Parameters
    ----------
    pretrained
        Folder of a model, id of the Hugging Face Hub, or name of a control model.
    revision
        Branch, tag or commit on the Hub; by default ``main``.
    dtype
        float32, float64 or bfloat16.
    context
        Prefix of every text; it is conditioned on but not scored.
    ignored
        Common arguments of the harness, such as batch_size, that have no effect here.

    Raises
    ------
    UserError
        If the model is missing or of another kind, or the dtype is unknown.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    method = ""

    def __init__(
        self,
        *,
        pretrained: str,
        revision: str = "",
        dtype: str = "float32",
        context: str = "",
        **ignored: Any,
    ) -> None:
        super().__init__()
        if unknown := set(ignored) - {"batch_size", "max_batch_size", "device"}:
            raise UserError(f"{self.name}: unknown argument {min(unknown)}; remove it")
        if dtype not in DTYPES:
            raise UserError(f"{self.name}: unknown dtype {dtype}; available: {', '.join(DTYPES)}")
        target = find(str(pretrained), revision=revision)
        if target.kind != self.kind:
            raise UserError(f"{self.name}: {pretrained} is of kind {target.kind}, not {self.kind}")
        from plumbline.probes.models.load import adapter, download
        from plumbline.probes.models.params import Model

        entry, folder = target.entry or {}, WORLDS / target.name
        if entry:
            folder = download(target.name, Model.model_validate(entry))
        commit = entry.get("revision", "")
        options = {"dtype": dtype, "context": context}
        self.scorer: Any = adapter(target.kind)(folder, target.name, commit, **options)

    def scores(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Score]:
        """Score each continuation, given its context."""
        scores: Iterator[Score] = self.scorer.logprobs(pairs)
        return scores

    def loglikelihood(self, requests: Sequence[Any], **_: Any) -> list[tuple[float, bool]]:
        """Return each continuation's log-likelihood in nats, and True if it is greedy.

        ``requests``: request objects of the harness, whose ``args`` are a context and a
        continuation. Raises UserError if a text is too long, or a context ends within a token.
        """
        pairs = []
        for context, continuation in (request.args[:2] for request in requests):
            bare = context.rstrip()  # trailing spaces belong to the continuation
            pairs.append((bare, context[len(bare) :] + continuation))
        return [(score.logprob_nats, bool(score.greedy)) for score in self.scores(pairs)]

    def loglikelihood_rolling(self, requests: Sequence[Any], **_: Any) -> list[float]:
        """Return the log-likelihood of each text, in nats; raise UserError if one is too long."""
        return [s.logprob_nats for s in self.scores(("", request.args[0]) for request in requests)]

    def generate_until(self, *_: Any, **__: Any) -> NoReturn:
        """Raise UserError, since the harness itself can generate text with causal models."""
        raise UserError(f"{self.name}: cannot run tasks of type generate_until; use --model hf")

    def get_model_info(self) -> dict[str, str | int]:
        """Return the model information that the harness stores with its results."""
        facts = self.scorer.facts()
        stored = {"model_dtype": facts["dtype"], "model_sha": facts["revision"]}
        method = {"plumbline_method": self.method} if self.method else {}
        return {**stored, "plumbline": version("plumbline"), **method}


class MaskedBridge(Bridge):
    """A masked model that returns pseudo-log-likelihoods.

    Parameters
    ----------
    method
        ``within_word_l2r`` (Kauf and Ivanova 2023; the default), ``original`` (Salazar et al.
        2020), ``aul`` or ``aula`` (Kaneko and Bollegala 2022, but summed over tokens instead of
        averaged).
    language
        Language of all texts, for models with language embeddings (XLM).
    """

    name, kind = "plumbline-mlm", "masked"

    def __init__(
        self, *, method: str = "within_word_l2r", language: str = "", **options: Any
    ) -> None:
        super().__init__(**options)
        self.method, self.language = method, language

    def scores(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Score]:
        """Score each continuation, given its context."""
        contexts, texts = zip(*pairs, strict=True)
        scores: Iterator[Score] = self.scorer.pseudo_logprobs(
            texts, self.method, language=self.language, prefixes=contexts
        )
        return scores


class CausalBridge(Bridge):
    """A causal model, for comparison with the harness's own model ``hf``."""

    name, kind = "plumbline-causal", "causal"


@cache
def register() -> None:
    """Register both models for ``lm_eval.simple_evaluate`` in this process."""
    import lm_eval.models  # noqa: F401 else the harness does not register its own models
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model

    for bridge in (MaskedBridge, CausalBridge):
        register_model(bridge.name)(type(bridge.__name__, (bridge, LM), {}))


def main() -> int:
    """Run the command line of the harness; return 1 after a UserError."""
    try:
        with optional_library():
            register()
            from lm_eval.__main__ import cli_evaluate

            cli_evaluate()
    except UserError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return WRONG
    return FINE


if __name__ == "__main__":
    sys.exit(main())
