"""Starts the command line: ``python -m payrelay``."""

from payrelay.cli.main import main

if __name__ == "__main__":
    main()
