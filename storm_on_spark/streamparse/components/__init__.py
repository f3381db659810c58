"""Components of pystorm as spouts and bolts here: what they send and read over Storm's pipe becomes calls."""
