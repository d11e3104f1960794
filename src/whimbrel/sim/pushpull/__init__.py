"""Carry out push and pull plans for delay-tolerant networks, and measure what they cost and how late they are."""
