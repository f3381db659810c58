"""A whole cluster on one machine, for development: `storm-spark dev`.

record.py   the file by which other commands find it
cluster.py  its processes: started, watched, ended
guard.py    a process that clears up when it has ended, however that was
dev.py      the command
"""
