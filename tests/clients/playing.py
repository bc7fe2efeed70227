"""Plays stories with a client that was installed as people install it."""

from itertools import islice
from typing import Final

from clients.conformance.play import Driver, play
from clients.conformance.service import Service
from clients.conformance.stories import Story, read_stories
from tests import draws

STORIES: Final = read_stories()
VARIED: Final = "charge"
"""The one story that every landing plays with each fault at each place; ``make client-stories`` plays all so."""


def played(story: Story, service: Service, driver: Driver) -> list[str]:
    """Plays a story as it is, and where it is due with its variations; gives a line for each run."""
    is_varied = story.name == VARIED or draws.depth() > 1
    return list(islice(play(story, service, driver), None if is_varied else 1))
