"""Speaks a provider's protocol; nobody else knows its field names."""
