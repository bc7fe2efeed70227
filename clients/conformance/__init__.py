"""The stories that every client must pass, against the real service and the simulator: see README.md."""
