"""The pages by which operators get in."""
