"""A whole cluster on one machine, for development: `storm-spark dev`.

cluster.py  its processes: started, watched, ended
guard.py    a process that cleans up after it has ended in any way
dev.py      the command

Other commands find it through a file: `cli/client/dev_record.py`.
"""
