"""Notifications: what a gateway says of its own accord, and where each one stands."""
