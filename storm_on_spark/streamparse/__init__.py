"""Topologies and components that were written for streamparse and pystorm, in process and unchanged."""
