"""Where detection runs, when it moves and what it costs: networks, workloads, planners."""
