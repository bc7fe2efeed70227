"""Speaks to payment gateways, each in its own protocol; nobody else knows a provider's field names."""
