"""Packing: which files belong to a topology, as an archive that is made by the client and unpacked by the driver."""
