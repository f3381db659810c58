"""Streams on containers, measured: what a cluster carries, and whether it loses messages when its parts are killed."""
