"""Loops of the reuse of selections, compiled."""
