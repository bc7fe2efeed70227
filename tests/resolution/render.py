"""Prints the table of operation and fault as Markdown: ``python -m tests.resolution.render``."""

import sys

from tests.resolution.table import drawn

if __name__ == "__main__":
    sys.stdout.write(drawn())
