"""Tracing: what one request leads to, also minutes later, as one trace."""
