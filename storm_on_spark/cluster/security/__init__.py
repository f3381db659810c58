"""The cluster's secret, signed records and requests, TLS, and who may do what (`permissions.py`)."""
