"""Compiled searches through time graphs: arrays in, arrays out."""
