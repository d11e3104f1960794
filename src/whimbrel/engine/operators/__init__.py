"""How each kind of operator runs: one file a kind, all of them listed in `registry`."""
