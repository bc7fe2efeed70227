"""Reads server-sent events, line by line."""

from payrelay_client import exact_json
from payrelay_client.models import Event


class EventLines:
    """Puts the lines of a stream together to events."""

    def __init__(self) -> None:
        self._data: list[str] = []

    def line(self, line: str) -> Event | None:
        """Takes the next line, without its end; gives an event where the line ends one.

        What can't be read is left out: the feed has it too.
        """
        if line:
            name, _, value = line.partition(":")
            if name == "data":
                self._data.append(value.removeprefix(" "))
            return None
        text, self._data = "\n".join(self._data), []
        if not text:
            return None
        try:
            return Event.of(exact_json.decode(text.encode()))
        except ValueError:
            return None
