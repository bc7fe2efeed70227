"""Stores events, endpoints and deliveries."""
