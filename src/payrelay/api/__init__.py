"""The clients' door: parses a request, calls one operation, renders its answer; everything from one table of routes."""
