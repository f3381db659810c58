"""Measurements of one question each, every module its own program; `make bench` runs none of them."""
