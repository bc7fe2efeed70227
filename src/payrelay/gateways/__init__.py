"""Calls payment gateways, each in its own protocol. No other layer knows a gateway's field names."""
