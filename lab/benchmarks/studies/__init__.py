"""Measurements of one question each, every module a program of its own; `make bench` runs none of them."""
