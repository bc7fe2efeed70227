"""Reads the settings once at start, from the environment and ``payrelay.toml``.

Rules:

1. No other module reads the environment.
2. A value comes from the environment or, where it isn't set there, from ``payrelay.toml`` (by equal names, nested).
   An empty variable counts as not set.
3. Any setting may be given as a file: its name followed by ``_FILE``, with a path as its value.
4. A name that is no setting is an error: a mistyped name must not be ignored. Variables that a cluster sets for its
   services are told apart by their forms, and ignored.
5. An error names the setting in its environment form, and never shows its value.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from payrelay.errors import SettingsError
from payrelay.settings.file_modes import require_own
from payrelay.settings.injected import is_injected, is_of_client
from payrelay.settings.model import Settings
from payrelay.settings.parse import PREFIX
from payrelay.settings.partitions import of_this_partition

CONFIG_VARIABLE: Final = "PAYRELAY_CONFIG"
"""The variable that names the configuration file; the only one that is not itself a setting."""
CONFIG_NAME: Final = "payrelay.toml"
"""The configuration file in the working directory; it may be absent."""

FILE_BYTES_MAX: Final = 65_536
"""A secret is short; a larger file is the wrong one."""
PROBLEMS_SHOWN_MAX: Final = 5
"""The most problems that the one line of an error names, so that it stays readable."""

SECRET_NAMES: Final = ("_secret", "_key", "alert_url", "alert_command")
"""How the names of settings end that are secrets, or often hold one; an address of the database may hold a password."""

_DELIMITER: Final = "__"
_FILE_SUFFIX: Final = "_file"
_GATEWAYS: Final = "gateways"
_EVENTS: Final = "events"
_IDENTITY: Final = "identity"
_CONSOLE: Final = "console"
_RETENTION: Final = "retention"
_RECONCILIATION: Final = "reconciliation"
_NESTED: Final = {_GATEWAYS, _EVENTS, _IDENTITY, _RETENTION, _CONSOLE, _RECONCILIATION}

_Tree = dict[str, object]


def read_settings(environ: Mapping[str, str] | None = None, directory: Path | None = None) -> Settings:
    """Reads and checks the settings from the environment and the configuration file; raises SettingsError.

    The defaults are the process's environment and its working directory.
    """
    variables = _variables(os.environ if environ is None else environ)
    config_path = _config_path(variables.pop(CONFIG_VARIABLE, None), directory or Path())
    _require_known(variables)
    tree = _merged(_read_config(config_path), _with_files(_nested(variables), ()))
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        raise SettingsError(_one_line(error.errors(include_input=False))) from None
    return of_this_partition(settings)


def child_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Gives the environment for programs that Payrelay starts, and for drivers: without its settings and secrets."""
    variables = os.environ if environ is None else environ
    return {name: value for name, value in variables.items() if not name.upper().startswith(PREFIX)}


def variable_name(location: tuple[int | str, ...]) -> str:
    """Gives a setting's name in the environment: ("gateways", "a", "app_id") is PAYRELAY_GATEWAYS__A__APP_ID."""
    names = [part.upper() for part in location if isinstance(part, str) and part != "[key]"]
    return PREFIX + _DELIMITER.join(names)


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environ.items()
        if name.startswith(PREFIX) and value and not is_injected(name, value) and not is_of_client(name, value)
    }


def _require_known(variables: Mapping[str, str]) -> None:
    """Raises SettingsError for a variable that can't be a setting; fields of a gateway are checked with its values."""
    for name in variables:
        first, *rest = name.removeprefix(PREFIX).lower().split(_DELIMITER)
        is_gateway = first == _GATEWAYS and len(rest) == 2  # noqa: PLR2004  a name and a field
        has_fields = first in {_EVENTS, _IDENTITY, _RETENTION, _CONSOLE, _RECONCILIATION} and len(rest) == 1
        is_plain = first.removesuffix(_FILE_SUFFIX) in Settings.model_fields.keys() - _NESTED and not rest
        if not (is_gateway or has_fields or is_plain):
            raise SettingsError(f"{name} is not a setting")


def are_unset(environ: Mapping[str, str] | None = None, directory: Path | None = None) -> bool:
    """Tells whether neither the environment nor a configuration file in the working directory sets anything."""
    variables = _variables(os.environ if environ is None else environ)
    return not variables and not ((directory or Path()) / CONFIG_NAME).is_file()


def _nested(variables: Mapping[str, str]) -> _Tree:
    """Makes ``{"gateways": {"a": {"app_id": …}}}`` of PAYRELAY_GATEWAYS__A__APP_ID."""
    tree: _Tree = {}
    for name, value in variables.items():
        *parents, last = name.removeprefix(PREFIX).lower().split(_DELIMITER)
        branch: _Tree = {last: value}
        for parent in reversed(parents):
            branch = {parent: branch}
        tree = _merged(tree, branch)
    return tree


def _merged(below: _Tree, above: _Tree) -> _Tree:
    """Merges two trees; where both have a value, the upper one counts."""
    merged = dict(below)
    for key, value in above.items():
        lower = below.get(key)
        merged[key] = _merged(lower, value) if isinstance(lower, dict) and isinstance(value, dict) else value
    return merged


def _read_file(name: str, path: Path) -> str:
    """Gives a file's text without the newline at its end."""
    require_own(path, name)
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
    """Gives the path of the configuration file: the named one, which must exist, or the default one, if it exists."""
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
    except (OSError, ValueError, RecursionError) as error:
        # The parser's message has the line and the column, never the text of the line.
        raise SettingsError(f"{path.name} can't be read: {error}") from None
    require_own(path, CONFIG_VARIABLE, is_secret=_has_secrets(tree))
    for key in tree:
        if key.removesuffix(_FILE_SUFFIX) not in Settings.model_fields:
            raise SettingsError(f"{key} in {path.name} is not a setting")
    return _with_files(tree, ())


def _has_secrets(tree: _Tree) -> bool:
    """True where a configuration file itself holds a secret, and does not only name the files that do."""
    return any(
        _has_secrets(value) if isinstance(value, dict) else key.endswith(SECRET_NAMES) or _has_password(key, value)
        for key, value in tree.items()
    )


def _has_password(key: str, value: object) -> bool:
    """True for a database's address with a password, which stands before the last at sign."""
    return key == "database_url" and ":" in str(value).rpartition("@")[0].partition("://")[2]


def _with_files(tree: _Tree, location: tuple[str, ...]) -> _Tree:
    """Replaces the settings that end with ``_file``, at every depth, by the texts of the files that they name."""
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
    """Lists the problems, setting by setting, in one line and without values."""
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
