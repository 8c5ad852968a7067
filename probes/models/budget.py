"""The tokens that a run may cost."""

from __future__ import annotations

from threading import Condition, Lock

from plumbline.builders.core.errors import Problem


class Spent(Problem):
    """The budget has no room for the next request."""


class Budget:
    """The tokens that a model may cost, shared by all requests on their way."""

    def __init__(self, limit: int) -> None:
        self.limit, self.spent, self.guessed = limit, 0, 0
        self._held = 0  # by requests on their way, the most that they can cost
        self._over = ""  # why it is
        self._turn, self._change = Lock(), Condition()

    def hold(self, most: int) -> None:
        """Set tokens aside for a request, waiting for others to come back if need be.

        Raises
        ------
        Spent
            If the request could go over the limit, with none on its way that could free some;
            from then on always, since a later row is of no use without it.
        """
        # Only one waits and others queue behind it: no later, smaller request slips past.
        with self._turn, self._change:
            self._change.wait_for(lambda: not self._held or self._fits(most))
            if not self._over and not self._fits(most):
                self._over = (
                    f"{self.spent:,} of {self.limit:,} tokens are used ({self.guessed:,} of them "
                    "assumed, one for each byte asked and the longest answer, where the server "
                    f"did not say), and the next request may take {most:,}"
                )
            if self._over:
                raise Spent(self._over)
            self._held += most

    def settle(self, most: int, used: int | None) -> None:
        """Give back what was set aside, and count what was used: all of it where unknown."""
        with self._change:
            self._held -= most
            self.spent += most if used is None else used
            self.guessed += most if used is None else 0
            self._change.notify_all()

    def _fits(self, most: int) -> bool:
        return self.spent + self._held + most <= self.limit
