"""How a topology is put together and handed in: the builder and its checks, functions as components, submitting."""
