"""Tests of stores: what every store promises, and a store whose calls fail."""
