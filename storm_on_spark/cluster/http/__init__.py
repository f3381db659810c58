"""The HTTP server of daemons: connections with limits, authentication, requests and answers."""
