"""Micro-batches: how far each reaches, and what became of its messages."""
