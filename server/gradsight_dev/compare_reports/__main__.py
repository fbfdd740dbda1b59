"""`python -m gradsight_dev.compare_reports`: save what the engine says about a corpus, compare two such snapshots.

Called by its path, with another tree's `server` on PYTHONPATH, it asks that tree's engine.
"""

import sys
from pathlib import Path

import gradsight_dev

if __name__ == "__main__":
    # The other tree may hold the workshop in another version: its modules come from beside this file.
    gradsight_dev.__path__ = [str(Path(__file__).resolve().parents[1]), *gradsight_dev.__path__]
    from gradsight_dev.compare_reports.command import main

    sys.exit(main())
