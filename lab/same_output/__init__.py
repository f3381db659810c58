"""The same topology of pystorm's components under Apache Storm, over multilang, and here, in process: equal output?

    python -m lab.same_output [--docs]

`components` are the spout and the bolts. They record what they receive, and the command compares it.
"""
