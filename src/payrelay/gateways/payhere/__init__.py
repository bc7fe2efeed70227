"""PayHere's adapter: ``wire`` writes and reads the wire format, purely; the other modules send."""
