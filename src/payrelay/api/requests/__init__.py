"""Requests: their routes, parameters and bodies, and how they are read."""
