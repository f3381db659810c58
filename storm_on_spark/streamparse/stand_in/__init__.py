"""Stand-ins for pystorm and streamparse where these are not installed: the same names, written for this package."""
