"""The pages: what runs, drawn; for a cluster on every Nimbus, and for a single run beside its driver.

Server-rendered, without any network but the server's own. `serving.py` puts the parts together, `sites/` say what there
is to see, `access/` says who may see it, `pages/` make what templates show, and `pictures/` draw.
"""
