"""Measurements of streams on containers: capacity, and whether messages are lost when parts of a cluster are killed."""
