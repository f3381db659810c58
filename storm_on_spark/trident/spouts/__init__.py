"""Spouts of batches: what users write, and the coordinator that numbers batches and commits them in order."""
