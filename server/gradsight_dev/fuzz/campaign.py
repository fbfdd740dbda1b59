"""A run over many seeds, spread over processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from gradsight_dev.fuzz.case import Case, examine
from gradsight_dev.fuzz.grammar import seeds

BATCH = 50


def run_campaign(
    first: int,
    count: int,
    *,
    kinds: Collection[str] = (),
    jobs: int = 1,
    with_engine: bool = True,
    on_batch: Callable[[int], None] = lambda _: None,
) -> Iterator[Case]:
    """Judge `count` programs from seed `first` on, in order of their seeds."""
    chosen = list(seeds(first, count, kinds))
    batches = [chosen[start : start + BATCH] for start in range(0, len(chosen), BATCH)]
    if jobs <= 1:
        prepare()
        for batch in batches:
            yield from _examine_all(batch, with_engine)
            on_batch(len(batch))
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=prepare) as pool:
        pending = [pool.submit(_examine_all, batch, with_engine) for batch in batches]
        for batch, future in zip(batches, pending):
            try:
                yield from future.result()
            except BrokenProcessPool as error:
                raise RuntimeError(
                    f"torch brought its process down at one of the seeds {batch[0]} to {batch[-1]}"
                ) from error
            on_batch(len(batch))


def prepare() -> None:
    """One thread per process: the tensors are tiny, and the machine is shared."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import torch

    torch.set_num_threads(1)
    # The first optimizer imports a large part of torch: not on the account of the first program.
    torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)


def _examine_all(batch: Sequence[int], with_engine: bool) -> list[Case]:
    return [examine(seed, with_engine) for seed in batch]
