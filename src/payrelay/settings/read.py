"""Reads the settings once at start, from the environment and ``payrelay.toml``.

Rules:

1. No other module reads the environment.
2. A value comes from the environment or, where it isn't there, from ``payrelay.toml`` (the same names, nested).
   An empty variable counts as not set.
3. Any setting may be given as a file: its name with ``_FILE`` behind it, and a path for its value.
4. What is not a setting is refused by name: a mistyped one must not pass in silence.
5. An error names the setting in its environment form and never shows its value.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from payrelay.errors import SettingsError
from payrelay.settings.model import Settings
from payrelay.settings.parse import PREFIX

CONFIG_VARIABLE: Final = "PAYRELAY_CONFIG"
"""Names the configuration file; the only variable that is not itself a setting."""
CONFIG_NAME: Final = "payrelay.toml"
"""The configuration file in the working directory; it need not be there."""

FILE_BYTES_MAX: Final = 65_536
"""A secret is short; a larger file is the wrong one."""
PROBLEMS_SHOWN_MAX: Final = 5
"""The one line that names what is wrong stays readable."""

_DELIMITER: Final = "__"
_FILE_SUFFIX: Final = "_file"
_GATEWAYS: Final = "gateways"
_EVENTS: Final = "events"
_IDENTITY: Final = "identity"
_NESTED: Final = {_GATEWAYS, _EVENTS, _IDENTITY}

_Tree = dict[str, object]


def read_settings(environ: Mapping[str, str] | None = None, directory: Path | None = None) -> Settings:
    """Reads and checks the settings of the environment and the configuration file; raises SettingsError.

    Without arguments, the process's environment and its working directory.
    """
    variables = _variables(os.environ if environ is None else environ)
    config_path = _config_path(variables.pop(CONFIG_VARIABLE, None), directory or Path())
    _require_known(variables)
    tree = _merged(_read_config(config_path), _nested(_resolved(variables)))
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise SettingsError(_one_line(error.errors(include_input=False))) from None


def surroundings(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Gives what a program that we start may see of our environment: all but our own settings, secrets among them."""
    variables = os.environ if environ is None else environ
    return {name: value for name, value in variables.items() if not name.upper().startswith(PREFIX)}


def variable_name(location: tuple[int | str, ...]) -> str:
    """Names a setting in its environment form: ("gateways", "a", "app_id") is PAYRELAY_GATEWAYS__A__APP_ID."""
    names = [part.upper() for part in location if isinstance(part, str) and part != "[key]"]
    return PREFIX + _DELIMITER.join(names)


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(PREFIX) and value}


def _require_known(variables: Mapping[str, str]) -> None:
    """Refuses a variable that can't be a setting; what stands inside a gateway is checked with its values."""
    for name in variables:
        first, *rest = name.removeprefix(PREFIX).lower().split(_DELIMITER)
        is_gateway = first == _GATEWAYS and len(rest) == 2  # noqa: PLR2004  a name and a field
        is_of_events = first == _EVENTS and [name.removesuffix(_FILE_SUFFIX) for name in rest] == ["allowed_hosts"]
        is_identity = first == _IDENTITY and len(rest) == 1
        is_plain = first.removesuffix(_FILE_SUFFIX) in Settings.model_fields.keys() - _NESTED and not rest
        if not (is_gateway or is_of_events or is_identity or is_plain):
            raise SettingsError(f"{name} is not a setting")


def _resolved(variables: Mapping[str, str]) -> dict[str, str]:
    """Reads the files that are named in place of values."""
    values: dict[str, str] = {}
    for name, value in variables.items():
        plain = name[: -len(_FILE_SUFFIX)] if name.lower().endswith(_FILE_SUFFIX) else name
        if plain in values or (plain != name and plain in variables):
            raise SettingsError(f"{plain} and {plain}_FILE are both set; one must go")
        values[plain] = value if plain == name else _read_file(name, Path(value))
    return values


def _nested(values: Mapping[str, str]) -> _Tree:
    """Makes ``{"gateways": {"a": {"app_id": …}}}`` of PAYRELAY_GATEWAYS__A__APP_ID."""
    tree: _Tree = {}
    for name, value in values.items():
        *parents, last = name.removeprefix(PREFIX).lower().split(_DELIMITER)
        branch: _Tree = {last: value}
        for parent in reversed(parents):
            branch = {parent: branch}
        tree = _merged(tree, branch)
    return tree


def _merged(below: _Tree, above: _Tree) -> _Tree:
    """Lays one tree over another; where both have a value, the upper one counts."""
    merged = dict(below)
    for key, value in above.items():
        lower = below.get(key)
        merged[key] = _merged(lower, value) if isinstance(lower, dict) and isinstance(value, dict) else value
    return merged


def _read_file(name: str, path: Path) -> str:
    """Gives a file's text without the newline at its end."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise SettingsError(f"{name} names a file that can't be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{name} names a file that is not text") from None
    if len(text) > FILE_BYTES_MAX:
        raise SettingsError(f"{name} names a file of more than {FILE_BYTES_MAX} bytes")
    return text.rstrip("\r\n")


def _config_path(named: str | None, directory: Path) -> Path | None:
    """Gives the configuration file: the named one, which must be there, or the usual one, if it is."""
    path = directory / (named or CONFIG_NAME)
    if path.is_file():
        return path
    if named is not None:
        raise SettingsError(f"{CONFIG_VARIABLE} names a file that isn't there")
    return None


def _read_config(path: Path | None) -> _Tree:
    if path is None:
        return {}
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        # The parser's text names line and column, never the line itself.
        raise SettingsError(f"{path.name} can't be read: {error}") from None
    for key in tree:
        if key.removesuffix(_FILE_SUFFIX) not in Settings.model_fields:
            raise SettingsError(f"{key} in {path.name} is not a setting")
    return _with_files(tree, ())


def _with_files(tree: _Tree, location: tuple[str, ...]) -> _Tree:
    """Reads the files that a configuration file names in place of values, at every depth."""
    values: _Tree = {}
    for key, value in tree.items():
        plain = key.removesuffix(_FILE_SUFFIX)
        name = variable_name((*location, key))
        if isinstance(value, dict):
            values[key] = _with_files(value, (*location, key))
        elif plain == key:
            values[key] = value
        elif plain in tree:
            raise SettingsError(f"{name.removesuffix('_FILE')} and {name} are both set; one must go")
        else:
            values[plain] = _read_file(name, Path(str(value)))
    return values


def _one_line(errors: list[ErrorDetails]) -> str:
    """Names what is wrong, setting by setting, in one line and without a value."""
    problems = [f"{variable_name(error['loc'])} {_problem(error)}" for error in errors]
    hidden = len(problems) - PROBLEMS_SHOWN_MAX
    tail = f"; and {hidden} more" if hidden > 0 else ""
    return "; ".join(problems[:PROBLEMS_SHOWN_MAX]) + tail


def _problem(error: ErrorDetails) -> str:
    match error["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return "is not a setting"
        case "value_error":
            return str(error["ctx"]["error"])
        case _:
            return error["msg"].replace("Input should", "must").replace("String should", "must")
