"""The command line: one command per file; each parses, calls one function and prints."""
