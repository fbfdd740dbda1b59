"""Runs the server out of an editor extension, with the libraries that the extension carries and nothing else.

The editor starts this file by its path with `python -I -S`: no variable of the environment, no installed package, no
`.pth` file, no `sitecustomize` and no file of the workspace can then get in between.
"""

import sys
from pathlib import Path

SERVER = Path(__file__).resolve().parents[2]
LIBRARIES = SERVER.parent / "libs"


def main() -> None:
    """Serve one client; does not return."""
    sys.path[:0] = [str(SERVER), str(LIBRARIES)]
    from gradsight.lsp.starting import main as serve

    serve()


if __name__ == "__main__":
    main()
