"""Metrics for ``/metrics`` and health checks."""
