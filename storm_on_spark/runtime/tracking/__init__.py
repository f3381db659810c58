"""Tracking of messages: ids, tuple trees, the acker, pending messages."""
