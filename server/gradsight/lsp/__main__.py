"""`python -m gradsight.lsp` starts the language server."""

from gradsight.lsp.starting import main

if __name__ == "__main__":
    main()
