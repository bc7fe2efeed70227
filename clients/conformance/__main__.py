"""Runs the stories with a client's driver: ``python -m clients.conformance --driver "node driver.mjs"``."""

import argparse
import shlex
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from clients.conformance.play import Driver, Failed, play
from clients.conformance.service import Service, running_service
from clients.conformance.stories import Story, read_stories


def main() -> int:
    """Runs them, prints a line for each, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m clients.conformance", description=__doc__)
    parser.add_argument("--driver", required=True, help="the command that makes one call, as README.md tells")
    parser.add_argument("--only", default="", help="stories in whose name this occurs")
    parser.add_argument("--once", action="store_true", help="each story as it is, without its variations")
    parser.add_argument("--jobs", type=int, default=2, help="how many stories run at the same time")
    options = parser.parse_args()
    driver = Driver(shlex.split(options.driver))
    stories = [story for story in read_stories() if options.only in story.name]
    with (
        tempfile.TemporaryDirectory() as folder,
        running_service(Path(folder)) as service,
        ThreadPoolExecutor(options.jobs) as workers,
    ):
        counts = list(workers.map(lambda story: told(story, service, driver, is_once=options.once), stories))
    failed = sum(count is None for count in counts)
    runs = sum(count or 0 for count in counts)
    sys.stdout.write(f"{len(stories) - failed} stories passed in {runs} runs, {failed} failed\n")
    return 1 if failed or not stories else 0


def told(story: Story, service: Service, driver: Driver, *, is_once: bool) -> int | None:
    """Plays a story, and prints what came of it; gives the number of its runs, or None where it failed."""
    try:
        count = sum(1 for _ in islice(play(story, service, driver), 1 if is_once else None))
    except Failed as failed:
        sys.stdout.write(f"failed  {failed}\n")
        return None
    sys.stdout.write(f"passed  {story.title}, {count} runs\n")
    sys.stdout.flush()
    return count


if __name__ == "__main__":
    sys.exit(main())
