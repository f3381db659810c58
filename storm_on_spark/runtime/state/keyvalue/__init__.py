"""Key-value state that is larger than memory: entries in pages, in Spark's state store.

- `state` is the `KeyValueState` that a bolt gets: the entries in use as a dict, a journal of changes, and the rest in
  pages.
- `pages` reads and writes pages, each through a cache; it knows which there are (`directory`) and when they are merged.
- `page` is the format of one; `rows` is what a page holds while it is made or merged.
- `scan` goes through all entries.
- `hashes` places keys.
"""
