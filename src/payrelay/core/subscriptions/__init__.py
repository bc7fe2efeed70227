"""Subscriptions: what is known of each."""
