"""Batches of texts of one length, and the device they run on.

Without padding no text affects another: on a CPU a result is bitwise the same whatever else is in
its batch. There each batch is computed by one thread, and batches run in parallel on the cores, so
results do not depend on the number of cores either.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from plumbline.builders.core.errors import UserError

# torch then takes its memory in large pages: answers of 170 MB a batch cost fewer page faults
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
BLOCK = 4096  # texts tokenised and sorted by length at once: bounds memory
TOKENS = 1024  # in one batch on a CPU; more gain nothing there
TOKENS_GPU = 16_384  # to begin with on a GPU
ROWS = (1, 512)  # fewest and most texts in one batch on a CPU
FULL = 0.7  # share of a GPU's memory up to which batches grow
AHEAD = 2  # batches on their way to a GPU while one is read back


def device() -> torch.device:
    """Return the GPU if there is one, else the CPU; ``PLUMBLINE_DEVICE`` names another."""
    named = os.environ.get("PLUMBLINE_DEVICE")
    return torch.device(named or ("cuda" if torch.cuda.is_available() else "cpu"))


def cores() -> int:
    """Return how many batches run side by side on the CPU; ``PLUMBLINE_CORES`` sets it."""
    named = os.environ.get("PLUMBLINE_CORES", "")
    if named and not named.isdigit():
        raise UserError(f"PLUMBLINE_CORES: {named!r} is not a number of cores")
    return int(named or 0) or len(os.sched_getaffinity(0))


def blocks(items: Iterable[T], size: int = 0) -> Iterator[list[T]]:
    """Yield items by the block of some ``size``, :data:`BLOCK` unless given, in their order."""
    source = iter(items)
    while block := list(islice(source, size or BLOCK)):
        yield block


class Batches:
    """Runs batches on one device."""

    def __init__(self, name: str, where: torch.device) -> None:
        self.name, self.where = name, where
        self.tokens = TOKENS if where.type == "cpu" else TOKENS_GPU
        self.most = ROWS[1] if where.type == "cpu" else 1 << 20
        if where.type == "cpu":
            torch.set_num_threads(1)

    def run(
        self,
        shapes: Sequence[Hashable],
        tokens: Sequence[int],
        launch: Callable[[list[int]], T],
        finish: Callable[[list[int], T], None],
    ) -> None:
        """Compute all rows, those of one shape together.

        Parameters
        ----------
        shapes
            Of each row: rows that may share a batch have equal shapes.
        tokens
            Of each row: what it costs.
        launch
            Computes some rows. Runs in several threads on a CPU; may only start the work on a GPU.
        finish
            Takes the results, in the calling thread, in any order of batches.

        Raises
        ------
        UserError
            If one row alone does not fit the device's memory.
        """
        if self.where.type == "cpu":
            with ThreadPoolExecutor(cores()) as pool:
                for rows, done in _side_by_side(pool, launch, self.cut(shapes, tokens)):
                    finish(rows, done)
            return
        pending: deque[tuple[list[int], T]] = deque()
        for rows in self.cut(shapes, tokens):
            pending.extend(self._launch(rows, launch))
            while len(pending) > AHEAD:
                finish(*pending.popleft())
        while pending:
            finish(*pending.popleft())

    def collect(
        self,
        shapes: Sequence[Hashable],
        tokens: Sequence[int],
        launch: Callable[[list[int]], torch.Tensor],
        into: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Compute all rows as :meth:`run` does, into an array, without gradients; return it."""

        def finish(rows: list[int], done: torch.Tensor) -> None:
            into[rows] = done.double().cpu().numpy()

        self.run(shapes, tokens, torch.inference_mode()(launch), finish)
        return into

    def cut(self, shapes: Sequence[Hashable], tokens: Sequence[int]) -> Iterator[list[int]]:
        """Yield batches of row numbers, the longest rows first, within the budget of the moment."""
        groups: dict[Any, list[int]] = {}
        for row, shape in enumerate(shapes):
            groups.setdefault(shape, []).append(row)
        for group in sorted(groups.values(), key=lambda g: (-tokens[g[0]], g[0])):
            start = 0
            while start < len(group):
                fit = min(max(ROWS[0], self.tokens // max(1, tokens[group[0]])), self.most)
                yield group[start : start + fit]
                start += fit

    def _launch(
        self, rows: list[int], launch: Callable[[list[int]], T]
    ) -> Iterator[tuple[list[int], T]]:
        """Start some rows on the GPU; if they do not fit, go on with half as many at a time."""
        start, size = 0, len(rows)
        while start < len(rows):
            part = rows[start : start + size]
            try:
                done = launch(part)
            except torch.OutOfMemoryError as error:
                if len(part) == 1:
                    raise UserError(
                        f"models.{self.name}: one row alone does not fit the memory of "
                        f"{self.where}; try dtype: bfloat16, or a larger device"
                    ) from error
                size, self.tokens = len(part) // 2, max(1, self.tokens // 2)
                if self.where.type == "cuda":
                    torch.cuda.empty_cache()
                continue
            if self.where.type == "cuda" and _used(self.where) < FULL:
                self.tokens = min(2 * self.tokens, 1 << 22)
            yield part, done
            start += len(part)

    def move(self, numbers: Any) -> torch.Tensor:
        """Bring integers to the device, without waiting for it."""
        tensor = torch.as_tensor(numbers, dtype=torch.long)
        if self.where.type == "cpu":
            return tensor
        if self.where.type == "cuda":
            tensor = tensor.pin_memory()
        return tensor.to(self.where, non_blocking=True)


def _side_by_side(
    pool: ThreadPoolExecutor, launch: Callable[[list[int]], T], batches: Iterable[list[int]]
) -> Iterator[tuple[list[int], T]]:
    """Yield results in the order of the batches, with few of them waiting in memory."""
    pending: deque[tuple[list[int], Any]] = deque()
    for rows in batches:
        pending.append((rows, pool.submit(launch, rows)))
        if len(pending) > 2 * cores():
            first, future = pending.popleft()
            yield first, future.result()
    while pending:
        first, future = pending.popleft()
        yield first, future.result()


def _used(where: torch.device) -> float:
    """Return the largest share of a GPU's memory that was in use."""
    whole = torch.cuda.get_device_properties(where).total_memory
    return torch.cuda.max_memory_allocated(where) / whole
