"""Modules that need no other system: sources, processors and sinks."""
