"""Acting in the console: what can be acted on, what is confirmed, and what needs a person."""
