"""Mobile queries in traffic: vehicles, their events, and what interests hold of them."""
