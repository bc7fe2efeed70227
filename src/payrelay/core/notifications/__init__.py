"""Notifications of the gateway, and their states."""
