"""How mobile queries run: timelines of interests, history, members that share a run, deliveries."""
