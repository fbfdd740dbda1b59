"""`gradsight facts`: what an operator does to memory and to the graph, as a card; coverage; refresh from the user's torch."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from dataclasses import asdict
from typing import Any

from gradsight.cli.shell import CLEAN, fail
from gradsight.ops.cache import load
from gradsight.ops.table import Table, UnreadableTable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`facts NAME`, `facts --coverage`, `facts --refresh [--python PATH]`."""
    parser.add_argument(
        "name", nargs="?", help="an operator: exp, Tensor.__imul__, nn.functional.relu, nn.Dropout"
    )
    parser.add_argument(
        "--coverage", action="store_true", help="how many public names have a fact, by namespace and source"
    )
    parser.add_argument(
        "--refresh", action="store_true", help="measure the torch of an interpreter and keep the table"
    )
    parser.add_argument("--python", metavar="PATH", help="the interpreter whose torch is measured")
    parser.add_argument(
        "--timeout", type=_seconds, default=900.0, metavar="SECONDS", help="give up measuring after this time"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how to print")


def run(args: argparse.Namespace) -> int:
    """Do what the arguments ask; 2 with one line when it cannot be done."""
    if args.refresh:
        return _refresh(args)
    if not args.name and not args.coverage:
        return fail("say which operator, for example: gradsight facts exp")
    try:
        table = _table_for(args)
    except _NoTable as error:
        return fail(str(error))
    if args.coverage:
        return _coverage(table, args.format)
    return _card(table, args.name, args.format)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a number of seconds: {text}") from None
    if not value > 0:
        raise argparse.ArgumentTypeError(f"not a number of seconds: {text}")
    return value


class _NoTable(Exception):
    """Neither a refreshed nor the shipped table can be read."""


def _table_for(args: argparse.Namespace) -> Table:
    from gradsight.ops.environment import default_python, installed_torch

    version = None if args.python else installed_torch(default_python())
    if args.python:
        from gradsight.ops.refresh import RefreshFailed, torch_version_of

        try:
            version = torch_version_of(args.python, min(args.timeout, 60.0))
        except RefreshFailed as error:
            raise _NoTable(str(error)) from error
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        try:
            table = load(version)
        except UnreadableTable as error:
            raise _NoTable(str(error)) from error
    for each in noted:
        print(f"gradsight: {each.message}", file=sys.stderr)
    return table


def _card(table: Table, name: str, form: str) -> int:
    fact = table.lookup(name.strip())
    if fact is None:
        reason = table.reason_missing(name)
        if reason:
            return fail(f"no fact about {name}: {reason}")
        nearest = table.suggest(name)
        return fail(f"no fact about {name}" + (f": did you mean {', '.join(nearest)}?" if nearest else ""))
    if form == "json":
        print(json.dumps({**_without_empty(asdict(fact)), "torch": table.torch_version}, indent=2))
        return CLEAN
    from gradsight.cli.card import print_card

    print_card(fact, table.torch_version)
    return CLEAN


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_empty(each) for key, each in value.items() if each not in ("", (), {}, [])}
    if isinstance(value, (list, tuple)):
        return [_without_empty(each) for each in value]
    return value


def _coverage(table: Table, form: str) -> int:
    from gradsight.ops.coverage import coverage_of

    coverage = coverage_of(table)
    if form == "json":
        print(json.dumps(asdict(coverage), indent=2))
        return CLEAN
    width = max(len(room.name) for room in coverage.rooms)
    print(f"torch {table.torch_version}")
    print(f"{'':{width}}  names  known  measured  formula  hand")
    for room in coverage.rooms:
        by = room.by_origin
        print(
            f"{room.name:{width}}  {room.names:5}  {room.known:5}  {by.get('measured', 0):8}  "
            f"{by.get('formula', 0):7}  {by.get('hand', 0):4}"
        )
    print("\nwithout a fact:")
    for reason, names in coverage.missing.items():
        print(f"  {reason}: {', '.join(names)}")
    print(f"\nbeyond these namespaces: {coverage.further} facts")
    print(f"total: {coverage.percent:.1f} %")
    return CLEAN


def _refresh(args: argparse.Namespace) -> int:
    from gradsight.ops.environment import default_python
    from gradsight.ops.refresh import RefreshFailed, refresh

    python = args.python or default_python()
    shown = sys.stderr.isatty()

    def show(done: int, total: int) -> None:
        if shown:
            print(
                f"\rmeasuring the torch of {python}: {done} of {total}", end="", file=sys.stderr, flush=True
            )

    try:
        made = refresh(python, args.timeout, progress=show)
    except RefreshFailed as error:
        if shown:
            print(file=sys.stderr)
        return fail(f"{error}; the facts in use stay as they are")
    if shown:
        print(file=sys.stderr)
    for trouble in made.troubles:
        print(f"gradsight: {trouble}", file=sys.stderr)
    if args.format == "json":
        print(json.dumps(asdict(made)))
    else:
        print(f"{made.facts} facts of torch {made.torch_version} kept in {made.path}")
    return CLEAN
