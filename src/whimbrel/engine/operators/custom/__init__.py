"""The execution environment of operators in Python (`Custom`): windows, selections, partitions."""
