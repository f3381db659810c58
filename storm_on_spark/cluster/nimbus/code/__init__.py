"""Code on this Nimbus: bringing that of every topology here, and what must be here before it may lead."""
