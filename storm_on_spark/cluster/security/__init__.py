"""The cluster's secret and what it is used for: signed records, requests that prove themselves; TLS beside it."""
