"""A PayHere of our own, for tests and for people who build on PayHere."""
