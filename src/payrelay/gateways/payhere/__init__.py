"""PayHere: ``wire``, ``replies``, ``effects``, ``reads`` and ``grants`` are pure, the others send."""
