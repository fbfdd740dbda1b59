"""`python -m gradsight_dev.injected`: score the engine on bugs in training code that others wrote.

Called by its path, with another tree's `server` on PYTHONPATH, it scores that tree's engine.
"""

import sys
from pathlib import Path

import gradsight_dev

if __name__ == "__main__":
    # The other tree may hold the workshop in another version: its modules come from beside this file.
    gradsight_dev.__path__ = [str(Path(__file__).resolve().parents[1]), *gradsight_dev.__path__]
    from gradsight_dev.injected.command import main

    sys.exit(main())
