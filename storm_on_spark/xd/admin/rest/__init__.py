"""The REST interface of an admin as a contract: the resources, their requests and their answers.

`cluster/http/guard.py` stands before it: it refuses callers whom it does not know, and changes by those who may only
read.
"""
