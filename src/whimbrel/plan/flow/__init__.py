"""Assign tasks to brokers so that the least flows through the network.

After sections 4 and 5 of a paper on a place-and-play engine for complex events in ad-hoc edge networks
(Information Processing Society of Japan, 2017): tasks are entrusted to brokers, contents are forwarded to
them and results delivered, and the volume of all flows, each counted once a hop, is to be least. `tabu.py`
searches with all knowledge (problem definition 1), `vicinity.py` with what each broker knows of those near it
(definition 2), `baselines.py` is what to compare with.
"""
