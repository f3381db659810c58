"""Messages as bytes, for components that run outside of this package, such as in tests with streams of their own."""
