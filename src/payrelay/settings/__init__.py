"""The settings: one frozen value, read and checked once at start, and passed down."""

from payrelay.settings.console import ConsoleSettings, is_loopback, is_secure
from payrelay.settings.identity import IdentitySettings
from payrelay.settings.model import (
    KEY_IS_MISSING,
    GatewaySettings,
    Settings,
    gateway_settings,
    marks_beside,
    model_of,
    require_serving,
)
from payrelay.settings.parse import GATEWAY_NAME
from payrelay.settings.read import CONFIG_VARIABLE, are_unset, child_environment, read_settings, variable_name
from payrelay.settings.sections import EventSettings, ReconciliationSettings, RetentionSettings

__all__ = [
    "CONFIG_VARIABLE",
    "GATEWAY_NAME",
    "KEY_IS_MISSING",
    "ConsoleSettings",
    "EventSettings",
    "GatewaySettings",
    "IdentitySettings",
    "ReconciliationSettings",
    "RetentionSettings",
    "Settings",
    "are_unset",
    "child_environment",
    "gateway_settings",
    "is_loopback",
    "is_secure",
    "marks_beside",
    "model_of",
    "read_settings",
    "require_serving",
    "variable_name",
]
