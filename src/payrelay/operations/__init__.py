"""Does; each file is one story from top to bottom. Called by the API, the command line and the worker alike."""
