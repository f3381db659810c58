"""A topology's code: packed by the client, stored and replicated by the Nimbuses, unpacked where it runs.

`packing` says what it consists of, `checksums` makes sure that it is what was sent, `distributors` bring it to where it
is needed.
"""
