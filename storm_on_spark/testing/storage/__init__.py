"""Tests of stores: the guarantees of every store, and a store whose calls fail."""
