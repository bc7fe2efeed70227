"""Statements about events, endpoints and deliveries."""
