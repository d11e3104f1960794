"""The one operator graph: every language compiles to it, every backend runs it."""
