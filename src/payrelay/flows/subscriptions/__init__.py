"""Reads, retries and cancels subscriptions, and keeps what is known of them."""
