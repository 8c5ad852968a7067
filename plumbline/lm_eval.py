"""Our scorers as models of lm-evaluation-harness, for masked models first of all.

The harness scores causal and sequence-to-sequence models and declines masked ones. ``python -m
plumbline.lm_eval`` is its own command line with two models more, ``plumbline-mlm`` and
``plumbline-causal``: it has no entry points for models of others, so they are registered here.

A request is a context and a continuation. The log-likelihood is the sum over the tokens of the
continuation, in nats. For a masked model each token is scored given the whole text, the context
and the rest of the continuation included: a pseudo-log-likelihood, which is no probability and is
not to be compared with a causal model's. As in the harness, spaces at the end of a context belong
to the continuation, and a request is greedy where every token is the most probable at its place.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from plumbline.builders.core.cli import FINE, WRONG
from plumbline.builders.core.errors import UserError, lacking
from plumbline.models import find
from plumbline.workspace import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from plumbline.probes.models.scorer import Score

DTYPES = ("float32", "float64", "bfloat16")
# the harness gives these to all models; batches and device are our engine's own business
UNUSED = {"batch_size", "max_batch_size", "device"}
WITHIN_WORD = "within_word_l2r"


class Bridge:
    """What the harness asks of a model, answered by a scorer.

    Parameters
    ----------
    pretrained
        Folder of a model, id of the Hugging Face Hub, or name of a control model.
    revision
        Branch, tag or commit on the Hub; by default ``main``.
    dtype
        float32, float64 or bfloat16.
    context
        Put before every text, seen and not scored.

    Raises
    ------
    UserError
        If there is no such model, it is of another kind, or an argument is none of ours.
    """

    called: ClassVar[str]
    kind: ClassVar[str]

    def __init__(
        self,
        *,
        pretrained: str = "",
        revision: str = "",
        dtype: str = "float32",
        context: str = "",
        **others: Any,
    ) -> None:
        super().__init__()
        if unknown := sorted(set(others) - UNUSED):
            raise UserError(f"{self.called}: knows no argument {', '.join(unknown)}")
        if not pretrained:
            raise UserError(f"{self.called}: name a model: --model_args pretrained=FOLDER_OR_ID")
        if dtype not in DTYPES:
            raise UserError(f"{self.called}: dtype {dtype}; there are {', '.join(DTYPES)}")
        found = find(str(pretrained), revision=revision)
        if found.kind != self.kind:
            other = next((n for n, of in MODELS.items() if of.kind == found.kind), "")
            advice = f"; use --model {other}" if other else ", which the harness has itself"
            raise UserError(f"{self.called}: {pretrained} is of kind {found.kind}{advice}")
        from plumbline.probes.models.files import download
        from plumbline.probes.models.load import adapter
        from plumbline.probes.models.params import Model

        where = PROJECT / "data/samples/worlds" / found.name
        if found.entry is not None:
            where = download(found.name, Model.model_validate(found.entry))
        commit = (found.entry or {}).get("revision", "")
        self.scorer: Any = adapter(found.kind)(
            where, found.name, commit, dtype=dtype, context=context
        )

    def scored(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Score]:
        """Score what stands behind a context, pair by pair."""
        raise NotImplementedError

    def loglikelihood(
        self,
        requests: Sequence[Any],
        disable_tqdm: bool = False,  # noqa: ARG002 the harness may give it
    ) -> list[tuple[float, bool]]:
        """Return log-likelihood in nats and greediness of each continuation.

        Parameters
        ----------
        requests
            Instances of the harness, whose ``args`` are context and continuation.

        Raises
        ------
        UserError
            If a text is too long for the model, the context ends within a token, or there is
            nothing to score.
        """
        pairs = (_apart(*request.args[:2]) for request in requests)
        return [(score.logprob_nats, bool(score.greedy)) for score in self.scored(pairs)]

    def loglikelihood_rolling(
        self,
        requests: Sequence[Any],
        disable_tqdm: bool = False,  # noqa: ARG002 the harness may give it
    ) -> list[float]:
        """Return the log-likelihood in nats of each text; one that is too long is a UserError."""
        texts = (("", request.args[0]) for request in requests)
        return [score.logprob_nats for score in self.scored(texts)]

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> NoReturn:  # noqa: ARG002
        """Refuse: the harness writes with causal models itself."""
        raise UserError(
            f"{self.called}: scores text and generates none; leave out tasks of the output type "
            "generate_until, or use --model hf for a generative model"
        )

    def get_model_info(self) -> dict[str, str | int]:
        """Return what the harness keeps beside its results."""
        facts = self.scorer.facts()
        kept = {"model_dtype": facts["dtype"], "model_sha": facts["revision"]}
        return {**kept, "plumbline": version("plumbline")}


class MaskedBridge(Bridge):
    """A masked model, whose log-likelihoods are pseudo-log-likelihoods.

    Parameters
    ----------
    method
        ``within_word_l2r`` (Kauf and Ivanova 2023; the default), ``original`` (Salazar et al.
        2020), ``aul`` or ``aula`` (Kaneko and Bollegala 2022; sums over tokens, not their means).
    language
        Of all texts, for models that must be told (XLM).
    """

    called = "plumbline-mlm"
    kind = "masked"

    def __init__(self, *, method: str = WITHIN_WORD, language: str = "", **options: Any) -> None:
        from plumbline.probes.models.scorer import METHODS

        if method not in METHODS:
            raise UserError(f"{self.called}: method {method}; there are {', '.join(METHODS)}")
        super().__init__(**options)
        self.method, self.language = method, language

    def scored(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Score]:
        """Score what stands behind a context, the context in sight."""
        contexts, texts = zip(*pairs, strict=True)
        scores: Iterator[Score] = self.scorer.pseudo_logprobs(
            texts, self.method, language=self.language, prefixes=contexts
        )
        return scores

    def get_model_info(self) -> dict[str, str | int]:
        """Return what the harness keeps beside its results."""
        return {**super().get_model_info(), "plumbline_method": self.method}


class CausalBridge(Bridge):
    """A causal model, to be held against the harness's own ``hf``."""

    called = "plumbline-causal"
    kind = "causal"

    def scored(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Score]:
        """Score what stands behind a context."""
        scores: Iterator[Score] = self.scorer.logprobs(pairs)
        return scores


MODELS: dict[str, type[Bridge]] = {of.called: of for of in (MaskedBridge, CausalBridge)}


def _apart(context: str, continuation: str) -> tuple[str, str]:
    """Return a request with the spaces between its parts in the second, as the harness does.

    Examples
    --------
    >>> _apart("the answer: ", "yes")
    ('the answer:', ' yes')
    """
    bare = context.rstrip()
    return bare, context[len(bare) :] + continuation


@cache
def register() -> None:
    """Make both models known to ``lm_eval.simple_evaluate`` in this process."""
    import lm_eval.models  # noqa: F401 its own, which it forgets where others are there before
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model

    for name, of in MODELS.items():
        register_model(name)(type(of.__name__, (of, LM), {}))


def main() -> int:
    """Run the harness's own command line; return 1 where a user can mend what is wrong."""
    try:
        register()
        from lm_eval.__main__ import cli_evaluate

        cli_evaluate()
    except UserError as problem:
        said = str(problem)
    except ModuleNotFoundError as error:
        if not (said := lacking(error)):
            raise
    else:
        return FINE
    print(f"error: {said}", file=sys.stderr)
    return WRONG


if __name__ == "__main__":
    sys.exit(main())
