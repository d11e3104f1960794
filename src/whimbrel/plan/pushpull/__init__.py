"""Which events are sent at once and which only when asked for, in networks whose links come and go.

After "Comet: Decentralized Complex Event Detection in Mobile Delay Tolerant Networks" (Chen, Ramaswamy,
Lowenthal, Kalyanaraman). A composite event is detected in a tree, from the brokers where its parts occur up
to where it is wanted. Where ways meet, a junction puts parts together and lets only those through
that still can complete it. Each junction has its inputs pushed to it, or pulls them, one after the other or
several at once: pulling costs less and takes longer. The plan with the least cost that keeps the delay
tolerance is wanted.

`tree.py` finds the tree, `comet.py` plans as the paper does, `pareto.py` finds the best plan of a tree,
`best.py` also chooses the junctions, `baselines.py` has what to compare with, `multi_query.py` plans for many
composite events at once.
"""
