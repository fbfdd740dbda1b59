"""`python -m gradsight_dev.sown FOLDER`: sow bugs into the repositories in a folder, and score the engine on them."""

import sys

from gradsight_dev.sown.command import main

if __name__ == "__main__":
    sys.exit(main())
