"""Compiled loops: arrays in, arrays out. Nothing here knows of queries, files or Arrow."""
