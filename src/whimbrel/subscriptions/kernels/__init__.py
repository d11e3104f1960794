"""Compiled loops over subscriptions: arrays in, arrays out."""
