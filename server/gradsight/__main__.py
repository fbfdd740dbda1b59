"""`python -m gradsight` is the command line."""

from gradsight.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
