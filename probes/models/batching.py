"""Batches of texts of equal length, and the device on which they are computed.

Texts are not padded, so no text affects another: on a CPU, a result is bitwise independent of the
rest of its batch. Each batch is computed by one thread, and batches run in parallel on the cores,
so results do not depend on the number of cores either.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from plumbline.builders.core.errors import UserError

# torch then allocates large pages, so that outputs of 170 MB cause fewer page faults
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence


T = TypeVar("T")
BLOCK = 4096  # texts tokenised and sorted by length at a time, which limits memory
TOKENS = 1024  # tokens per batch on a CPU; larger batches are not faster
TOKENS_GPU = 32_768  # initial number of tokens per batch on a GPU
ROWS = 512  # maximum number of texts per batch on a CPU
AHEAD = 2  # batches queued on a GPU while another is read back


def device() -> torch.device:
    """Return the device set by ``PLUMBLINE_DEVICE``; the default is the GPU if there is one."""
    named = os.environ.get("PLUMBLINE_DEVICE")
    return torch.device(named or ("cuda" if torch.cuda.is_available() else "cpu"))


def cores() -> int:
    """Return the number of batches that run in parallel on the CPU (``PLUMBLINE_CORES``)."""
    named = os.environ.get("PLUMBLINE_CORES", "")
    if named and not named.isdigit():
        raise UserError(f"PLUMBLINE_CORES: must be a number of cores, not {named!r}")
    return int(named or 0) or len(os.sched_getaffinity(0))


def blocks(items: Iterable[T], size: int = 0) -> Iterator[list[T]]:
    """Yield items in order, in blocks of ``size`` (default :data:`BLOCK`)."""
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
        """Compute all rows without gradients, and yield them in batches of rows of equal shape.

        Raises UserError if a single row exceeds the memory of the device.

        ``shapes``: the shape of each row; only rows of equal shape share a batch.
        ``costs``: the cost of each row, in tokens.
        ``launch``: function that computes rows. On a CPU, it is called in several threads; on a
        GPU, it may return before the computation is complete.
        """
        launch = torch.inference_mode()(launch)
        batches = self._cut(shapes, costs)
        if self.where.type == "cpu":
            parts = list(batches)
            with ThreadPoolExecutor(cores()) as pool:
                yield from zip(parts, pool.map(launch, parts), strict=True)
        else:
            yield from _ahead((part for rows in batches for part in self._fit(rows, launch)), AHEAD)

    def each(
        self, shapes: Sequence[Hashable], costs: Sequence[int], launch: Callable[[list[int]], Any]
    ) -> list[Any]:
        """Compute rows as :meth:`run` does; return the results by row, with tensors as arrays."""
        results: list[Any] = [None] * len(shapes)
        for rows, done in self.run(shapes, costs, launch):
            values = done.cpu().numpy() if isinstance(done, torch.Tensor) else done
            for row, value in zip(rows, values, strict=True):
                results[row] = value
        return results

    def _cut(self, shapes: Sequence[Hashable], costs: Sequence[int]) -> Iterator[list[int]]:
        """Yield batches of row indices that fit the current token budget, longest rows first."""
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
        """Launch rows on the GPU; halve the batch size whenever the rows exceed its memory."""
        start, size = 0, len(rows)
        while start < len(rows):
            part = rows[start : start + size]
            try:
                done = launch(part)
            except torch.OutOfMemoryError as error:
                if len(part) == 1:
                    raise UserError(
                        f"models.{self.name}: one row exceeds the memory of "
                        f"{self.where}; try dtype: bfloat16, or a larger device"
                    ) from error
                size, self.tokens = len(part) // 2, max(1, self.tokens // 2)
                torch.cuda.empty_cache()
                continue
            yield part, done
            start += len(part)

    def move(self, numbers: Any) -> torch.Tensor:
        """Copy integers to the device asynchronously."""
        tensor = torch.as_tensor(numbers, dtype=torch.long)
        if self.where.type == "cuda":
            tensor = tensor.pin_memory()
        return tensor.to(self.where, non_blocking=True)


def _ahead(running: Iterable[T], number: int) -> Iterator[T]:
    """Yield started jobs in order, keeping at most ``number`` later jobs pending."""
    pending: deque[T] = deque()
    for job in running:
        pending.append(job)
        if len(pending) > number:
            yield pending.popleft()
    yield from pending
