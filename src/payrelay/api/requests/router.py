"""The router: finds the routes of a path."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from payrelay.api.http.queries import decoded
from payrelay.api.requests.route import Route


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """The routes of a path by method, the value of Allow, and the variable segment, decoded."""

    methods: Mapping[str, Route]
    allow: str
    segment: str


class Router:
    """Finds the routes of a path.

    A literal path of the table also has the methods of the template that it matches: ``GET payments/charge`` reads the
    order called "charge".
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        paths: dict[tuple[str, ...], dict[str, Route]] = {}
        for route in routes:
            paths.setdefault(tuple(route.path.strip("/").split("/")), {})[route.method] = route
        self._templates: dict[int, list[_Template]] = {}
        for segments, methods in paths.items():
            if _variable(segments) is not None:
                self._templates.setdefault(len(segments), []).append(_Template(segments, methods))
        self._literal: dict[tuple[str, ...], RouteMatch] = {}
        for segments, methods in paths.items():
            if _variable(segments) is None:
                fitting = self._fitting(segments)
                inherited = {} if fitting is None else dict(fitting.methods)
                segment = "" if fitting is None else fitting.segment
                merged = {**inherited, **methods}
                self._literal[segments] = RouteMatch(merged, _allow(merged), segment)
        self._lengths = frozenset(map(len, paths))
        self._plain = {tuple(map(str.encode, segments)): match for segments, match in self._literal.items()}
        """The literal paths as they are sent where nothing in them is escaped."""

    def find(self, raw_segments: list[bytes]) -> RouteMatch | None:
        """Gives the routes at these raw segments, which follow ``api``, or None where there are none.

        Raises Refusal (malformed_request) for a segment that can't be decoded.
        """
        plain = self._plain.get(tuple(raw_segments))
        if plain is not None:
            return plain
        if len(raw_segments) not in self._lengths:  # each is decoded, and somebody may send thousands of slashes
            return None
        segments = tuple(map(decoded, raw_segments))
        return self._literal.get(segments) or self._fitting(segments)

    def _fitting(self, segments: tuple[str, ...]) -> RouteMatch | None:
        for template in self._templates.get(len(segments), ()):
            if template.fits(segments):
                return RouteMatch(template.methods, template.allow, segments[template.position])
        return None


class _Template:
    """A path with one variable segment."""

    __slots__ = ("_after", "_before", "allow", "methods", "position")

    def __init__(self, segments: tuple[str, ...], methods: dict[str, Route]) -> None:
        self.position = _variable(segments) or 0
        self._before, self._after = segments[: self.position], segments[self.position + 1 :]
        self.methods = methods
        self.allow = _allow(methods)

    def fits(self, segments: tuple[str, ...]) -> bool:
        """True where every other segment is equal, and the variable one is not empty."""
        position = self.position
        return (
            segments[:position] == self._before and segments[position + 1 :] == self._after and segments[position] != ""
        )


def _variable(segments: tuple[str, ...]) -> int | None:
    return next((index for index, segment in enumerate(segments) if segment.startswith("{")), None)


def _allow(methods: Mapping[str, Route]) -> str:
    return ", ".join(sorted(methods))
