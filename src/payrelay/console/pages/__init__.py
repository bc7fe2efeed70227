"""The pages of the console, one file a subject; each function answers one route of ``console.routes``."""
