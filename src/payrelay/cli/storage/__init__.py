"""The commands about what the store keeps, and the room that it takes."""
