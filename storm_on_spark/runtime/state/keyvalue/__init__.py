"""Key-value state that is larger than memory: entries in pages, in Spark's state store.

Keys and values come in; pages and a journal go out to the store, and only what is asked for comes back. Begin with
`state.py`.

- `state` is the `KeyValueState` that a bolt gets: the entries in use as a dict, a journal of changes, and the rest in
  pages.
- `pages` reads and writes pages through a cache; it knows which pages exist (`directory`) and when to merge them.
- `page` is the format of one page; `rows` holds its entries while it is made or merged.
- `scan` goes through all entries.
- `hashes` places keys.
"""
