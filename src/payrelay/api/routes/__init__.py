"""The routes: their rows, bodies and handlers."""
