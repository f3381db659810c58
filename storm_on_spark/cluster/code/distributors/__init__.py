"""Distributors: where the Nimbuses keep code, and how other hosts get it."""
