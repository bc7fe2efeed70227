"""Events: what is told, to whom, and when it is tried again."""
