"""The embedded engine: runs an operator graph in this process, over batches and over time."""
