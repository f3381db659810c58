"""Containers: processes that run instances of modules, each between two places of the message bus."""
