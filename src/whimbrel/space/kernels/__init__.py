"""Compiled loops over shapes and lists: arrays in, arrays out. Nothing here knows of events or queries."""
