"""Alerts: what somebody has to be told."""
