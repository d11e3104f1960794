"""What the words mean: time, schemas, events. Frozen plain data; nothing here runs a query."""
