"""Assign tasks to brokers so that the least flows through the network.

After "A place-and-play complex event processing engine for ad-hoc edge networks" (Journal of Information
Processing 25, 2017), sections 4 and 5: tasks are entrusted to brokers, contents are forwarded to them and
results delivered, and the volume of all flows, each counted once a hop, is to be least. `tabu.py` searches
with all knowledge (problem definition 1), `vicinity.py` with what each broker knows of those near it
(definition 2), `exact.py` gives the optimum of small problems, `baselines.py` what to compare with.
"""
