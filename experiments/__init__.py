"""Published experiments, made again with Whimbrel; not part of the package (see README.md)."""
