"""Reads, retries and cancels subscriptions, and shows their stored states."""
