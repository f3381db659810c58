"""Key-value state that is larger than memory: entries in pages, in Spark's state store.

- `state` is the `KeyValueState` that a bolt gets: the entries in use as a dict, a journal of changes, and the rest in
  pages.
- `pages` reads and writes pages through a cache; it knows which pages exist (`directory`) and when to merge them.
- `page` is the format of one page; `rows` holds its entries while it is made or merged.
- `scan` goes through all entries.
- `hashes` places keys.
"""
