"""The supervisor: starts a driver for every topology assigned to one of its slots, and looks after it."""
