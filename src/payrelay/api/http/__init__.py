"""HTTP as we speak it: requests read, answers and streams written, limits held."""
