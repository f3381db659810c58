"""The REST interface of a Nimbus: Storm UI's paths and field names, and what a submission needs.

Requests come in through `cluster/http`; answers of `schemas.py` go out. Who may call which path is a table in
`cluster/security/permissions.py`. Begin with `app.py`.
"""
