"""The clients' API: parses a request, calls one flow, and renders its answer, all by one table of routes."""
