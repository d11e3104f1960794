"""Compiled geometry of safe regions: borders and positions in, rectangles and distances out."""
