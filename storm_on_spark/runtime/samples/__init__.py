"""Samples of tuples: Storm's event logging, switched on and off while a topology runs."""
