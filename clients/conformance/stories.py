"""The stories as data, each with the faults that it is run with."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

STORIES: Final = Path(__file__).with_name("stories.json")
LOST_REPLIES: Final = ("drop_before", "drop_after", "cut")
KILLS: Final = ("kill_before", "kill_after")

Step = Mapping[str, Any]


@dataclass(frozen=True)
class Story:
    """A story with a store or without.

    Attributes:
        name: as in the list.
        store: ``file`` or ``none``.
        told: the story as the list has it.
        settings: of the client, for all stories.
    """

    name: str
    store: str
    told: Mapping[str, Any]
    settings: Mapping[str, Any]

    @property
    def steps(self) -> list[Step]:
        """Its calls one after the other."""
        steps: list[Step] = self.told["steps"]
        return steps

    @property
    def title(self) -> str:
        """Its name in a report."""
        return f"{self.name} ({'with a store' if self.store == 'file' else 'without a store'})"


@dataclass(frozen=True)
class Variation:
    """One fault more, in one step: of the proxy at one request, or of the store at one put."""

    step: int
    number: int
    do: str
    of_store: bool = False

    @property
    def title(self) -> str:
        """What it does, in a report."""
        place = "put" if self.of_store else "request"
        return f"{self.do} at {place} {self.number} of step {self.step + 1}"


@dataclass(frozen=True)
class Counted:
    """What a step needed without a fault."""

    requests: int
    puts: int


def read_stories(path: Path = STORIES) -> list[Story]:
    """Reads the list; a story with two stores is two."""
    told = json.loads(path.read_text())
    return [
        Story(name=story["name"], store=store, told=story, settings=told["settings"])
        for story in told["stories"]
        for store in story["stores"]
    ]


def variations(story: Story, counted: list[Counted]) -> Iterator[Variation]:
    """Gives every fault that the story is to be run with, by what its steps needed without one."""
    ways = story.told.get("vary", [])
    for step, count in enumerate(counted):
        if step + 1 < story.told.get("vary_from", 1):
            continue
        faults = (*(LOST_REPLIES if "replies" in ways else ()), *(KILLS if "kills" in ways else ()))
        for number in range(1, count.requests + 1):
            yield from (Variation(step, number, do) for do in faults)
        if "writes" in ways:
            for number in range(1, count.puts + 1):
                yield from (Variation(step, number, do, of_store=True) for do in KILLS)
