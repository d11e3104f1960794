"""Push and pull plans for delay-tolerant networks, carried out: what they cost, how late they are."""
