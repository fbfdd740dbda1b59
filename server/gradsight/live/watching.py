"""`gradsight.watch()`: blame inside the user's own exceptions, and a report of what was not trained."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gradsight.live.words import add_notes, notes_of, place_text

if TYPE_CHECKING:
    from gradsight.agent.faults import Fault
    from gradsight.agent.watch import Watch
    from gradsight.live.ranks import RanksReport
    from gradsight.live.report import WatchReport

COMPILED = "a part of the program was compiled: what runs inside it is not seen"


class Watching:
    """A watch in this process: on from its making to `stop`, or to the end of its `with` block."""

    def __init__(self, every: int, report: bool) -> None:
        from gradsight.agent.watch import Watch, refusal

        reason = refusal()
        if reason:
            raise RuntimeError(reason)
        self._reports = report
        self._gathered = 0
        self.on_fault: Callable[[BaseException, Fault], None] = lambda error, fault: None
        self._watch: Watch = Watch(self._tell, every)
        self._watch.start()

    @property
    def is_on(self) -> bool:
        """Whether it listens."""
        return self._watch.is_on

    def stop(self) -> None:
        """Ends the watch; torch is as it was."""
        self._watch.stop()

    def report(self) -> WatchReport:
        """What was seen so far."""
        from gradsight.live.report import WatchReport, parameter_lines, untrained

        watch = self._watch
        remarks = list(watch.ledger.notes)
        if watch.compiles:
            remarks.append(COMPILED)
        if watch.every > 1:
            remarks.append(f"one step in {watch.every} was watched")
        remarks += [
            f"internal error of GradSight, please report it: {text}" for text in watch.ledger.problems
        ]
        books = watch.books()
        cuts, explained = watch.cuts(untrained(books))
        lines = tuple(parameter_lines(books, explained))
        return WatchReport(
            tuple(watch.errors),
            tuple(cuts),
            tuple(watch.kept_graphs()),
            lines,
            tuple(remarks),
            watch.watched_steps,
        )

    def report_of_ranks(self, seconds: float = 60) -> WatchReport | RanksReport:
        """The report of all ranks on rank 0, as soon as every rank has asked for it; elsewhere that of this process."""
        from gradsight.agent.gathering import gather, rank_and_size
        from gradsight.live.ranks import merged, words_of

        own = self.report()
        self._gathered += 1
        found = gather(words_of(own), self._gathered, seconds)
        return merged(found, rank_and_size()[1]) if found is not None else own

    def explain(self, error: BaseException) -> None:
        """Puts notes on an error that came up, if it has a gradient story."""
        self._watch.explain(error)

    def state_of(self, name: str, value: Any) -> str:
        """What is known of a tensor, a sentence a line."""
        from gradsight.agent.tensor_state import state_of

        said = state_of(value, self._watch.instruments.log)
        return "\n".join(
            [f"{name}: {said[0][0]}"]
            + [
                f"  {text} ({place_text(place)})" if place is not None else f"  {text}"
                for text, place in said[1:]
            ]
        )

    def __enter__(self) -> Watching:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            self.explain(error)
        try:
            if self._reports and error is None:
                self._print_report()
        finally:
            self.stop()

    def _print_report(self) -> None:
        """In a distributed program the end of the block is reached by all ranks: rank 0 prints for them."""
        from gradsight.agent.gathering import is_met, rank_and_size

        rank, size = rank_and_size()
        if size == 1:
            print(self.report(), file=sys.stderr)
            return
        report = self.report_of_ranks()
        if not is_met():
            # The ranks have parted already: each speaks for itself.
            print("\n".join(f"rank {rank}: {line}" for line in str(report).splitlines()), file=sys.stderr)
        elif rank == 0:
            print(report, file=sys.stderr)

    def _tell(self, error: BaseException, fault: Fault) -> None:
        notes = [line for each in (fault, *fault.others) for line in notes_of(each)]
        add_notes(error, notes)
        self.on_fault(error, fault)


_current: Watching | None = None


def watch(every: int = 1, report: bool = True) -> Watching:
    """Listens to autograd in this process from here on; as a context manager, to the end of the block.

    An error of autograd gets notes that name who saved, who overwrote and which backward needed it.  `every=100` listens to
    one optimizer step in a hundred, so that it can stay on for days.  With `report` the end of a block prints what was seen.
    """
    global _current
    if not isinstance(every, int) or isinstance(every, bool) or every < 1:
        raise ValueError(f"every must be a whole number from 1 on, not {every!r}")
    if _current is not None and _current.is_on:
        _current.stop()
    _current = Watching(every, report)
    return _current


def report(all_ranks: bool = False) -> WatchReport | RanksReport:
    """What the watch of this process has seen so far.

    With `all_ranks` every rank of a distributed program must ask: rank 0 gets the report of all, the others their own.
    """
    return current().report_of_ranks() if all_ranks else current().report()


def current() -> Watching:
    """The watch of this process."""
    if _current is None:
        raise RuntimeError("nothing is watched: call gradsight.watch() first")
    return _current


def is_watching() -> bool:
    """Whether a watch listens in this process."""
    return _current is not None and _current.is_on
