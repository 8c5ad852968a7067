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


T = TypeVar("T")
BLOCK = 4096  # texts tokenised and sorted by length at once: bounds memory
TOKENS = 1024  # in one batch on a CPU; more gain nothing there
TOKENS_GPU = 16_384  # to begin with on a GPU
ROWS = 512  # most texts in one batch on a CPU
FULL = 0.7  # share of a GPU's memory up to which batches grow
AHEAD = 2  # batches on their way to a GPU while one is read back


def device() -> torch.device:
    """Return the GPU if there is one, else the CPU; ``PLUMBLINE_DEVICE`` names another."""
    named = os.environ.get("PLUMBLINE_DEVICE")
    return torch.device(named or ("cuda" if torch.cuda.is_available() else "cpu"))


def cores() -> int:
    """Return the number of parallel batches on the CPU; ``PLUMBLINE_CORES`` sets it."""
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
        self.most = ROWS if where.type == "cpu" else 1 << 20
        if where.type == "cpu":
            torch.set_num_threads(1)

    def run(
        self, shapes: Sequence[Hashable], costs: Sequence[int], launch: Callable[[list[int]], T]
    ) -> Iterator[tuple[list[int], T]]:
        """Compute all rows without gradients, those of one shape together; yield each batch.

        A row that alone does not fit the device's memory is a UserError.

        ``shapes``: of each row: rows that may share a batch have equal shapes.
        ``costs``: of each row, in tokens.
        ``launch``: computes some rows. Runs in several threads on a CPU; may only start the work on
        a GPU.
        """
        launch = torch.inference_mode()(launch)
        batches = self._cut(shapes, costs)
        if self.where.type == "cpu":
            with ThreadPoolExecutor(cores()) as pool:
                running = ((rows, pool.submit(launch, rows)) for rows in batches)
                for rows, future in _ahead(running, 2 * cores()):
                    yield rows, future.result()
        else:
            yield from _ahead((part for rows in batches for part in self._fit(rows, launch)), AHEAD)

    def each(
        self, shapes: Sequence[Hashable], costs: Sequence[int], launch: Callable[[list[int]], Any]
    ) -> list[Any]:
        """Compute all rows as :meth:`run` does; return the result of each, tensors as arrays."""
        results: list[Any] = [None] * len(shapes)
        for rows, done in self.run(shapes, costs, launch):
            values = done.cpu().numpy() if isinstance(done, torch.Tensor) else done
            for row, value in zip(rows, values, strict=True):
                results[row] = value
        return results

    def _cut(self, shapes: Sequence[Hashable], costs: Sequence[int]) -> Iterator[list[int]]:
        """Yield batches of row numbers, the longest rows first, within the budget of the moment."""
        groups: dict[Any, list[int]] = {}
        for row, shape in enumerate(shapes):
            groups.setdefault(shape, []).append(row)
        for group in sorted(groups.values(), key=lambda g: (-costs[g[0]], g[0])):
            start = 0
            while start < len(group):
                fit = min(max(1, self.tokens // max(1, costs[group[0]])), self.most)
                yield group[start : start + fit]
                start += fit

    def _fit(
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
            if self.where.type == "cuda":
                whole = torch.cuda.get_device_properties(self.where).total_memory
                if torch.cuda.max_memory_allocated(self.where) < FULL * whole:
                    self.tokens = min(2 * self.tokens, 1 << 22)
            yield part, done
            start += len(part)

    def move(self, numbers: Any) -> torch.Tensor:
        """Bring integers to the device, without waiting for it."""
        tensor = torch.as_tensor(numbers, dtype=torch.long)
        if self.where.type == "cuda":
            tensor = tensor.pin_memory()
        return tensor.to(self.where, non_blocking=True)


def _ahead(running: Iterable[T], number: int) -> Iterator[T]:
    """Yield what was begun, in its order, with so many more under way at most."""
    pending: deque[T] = deque()
    for job in running:
        pending.append(job)
        if len(pending) > number:
            yield pending.popleft()
    yield from pending
