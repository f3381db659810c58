"""The HTTP server of daemons: connections with limits, who is asking (`auth.py`), requests and answers.

Whether callers may do what they ask for is decided in `cluster/security/permissions.py`.
"""
