"""HTTP: reads requests, writes answers and streams, and keeps their limits."""
