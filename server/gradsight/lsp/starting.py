"""Starts the server from the command line, and ends the process when the client is gone."""

from __future__ import annotations

import argparse
import gc
import logging
import sys

LEVELS = ("debug", "info", "warning", "error")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How the server is reached, and how much it logs."""
    parser.add_argument(
        "--stdio", action="store_true", help="talk over standard input and output (the default)"
    )
    parser.add_argument("--tcp", metavar="[HOST:]PORT", help="listen for one client instead, for debugging")
    parser.add_argument("--log-level", choices=LEVELS, default="warning", help="what goes to standard error")


def main(argv: list[str] | None = None) -> None:
    """Serve one client; does not return."""
    parser = argparse.ArgumentParser(
        prog="python -m gradsight.lsp", description="speak the language server protocol"
    )
    add_arguments(parser)
    args = parser.parse_args(argv)
    serve(args)


def serve(args: argparse.Namespace) -> None:
    """Serve one client and end the process with the code that the protocol asks for."""
    address = ("127.0.0.1", 0)
    if args.tcp is not None:
        host, _, port = args.tcp.rpartition(":")
        if not port.isdigit() or int(port) > 65535:
            print(f"gradsight: --tcp wants a port or host:port, not {args.tcp}", file=sys.stderr)
            raise SystemExit(2)
        address = (host or "127.0.0.1", int(port))
    prepare_logging(args)
    # A message must not wait long for the interpreter while an analysis runs in its thread.
    sys.setswitchinterval(0.0005)
    # Start-up makes hundreds of thousands of objects that live on: collecting among them is time lost.
    gc.disable()
    from gradsight.lsp.server import GradSightServer
    from gradsight.lsp.serving import leave, serve_stdio, serve_tcp

    server = GradSightServer()
    gc.freeze()
    gc.enable()
    if args.tcp is None:
        leave(serve_stdio(server.protocol))
    leave(serve_tcp(server.protocol, *address))


def prepare_logging(args: argparse.Namespace) -> None:
    """Log to standard error."""
    logging.basicConfig(
        stream=sys.stderr,
        level=args.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    # pygls logs every message that it refuses with a traceback; what matters of it is logged by our own side.
    logging.getLogger("pygls").setLevel(logging.CRITICAL if args.log_level != "debug" else logging.DEBUG)
