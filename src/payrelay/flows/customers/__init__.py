"""Stores customers, shows, changes and erases them."""
