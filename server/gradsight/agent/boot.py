"""The first file that runs in the user's interpreter: makes the agent importable and hands over.

It is started by its path, so that nothing of the host's environment leaks into the user's; it must parse on every
Python that can be told apart from one that is too old.
"""

import sys

_OLDEST = (3, 9)


def _make_importable() -> None:
    """Registers the package by hand: its folder must not enter the user's search path."""
    import os
    import types

    agent = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != agent]
    if "gradsight" not in sys.modules:
        package = types.ModuleType("gradsight")
        package.__path__ = [os.path.dirname(agent)]
        sys.modules["gradsight"] = package


def main() -> int:
    if sys.version_info < _OLDEST:
        # Exit status 64 is how the host recognises an interpreter that cannot even import the messages.
        sys.stderr.write("python {}.{} is too old for the probe\n".format(*sys.version_info[:2]))
        return 64
    _make_importable()
    from gradsight.agent.entry import serve

    return serve(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
