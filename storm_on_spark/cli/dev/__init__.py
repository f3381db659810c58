"""A whole cluster on one machine, for development: `storm-spark dev`.

cluster.py  its processes: started, watched, ended
guard.py    a process that clears up when it has ended, however that was
dev.py      the command

Other commands find it by a file: `cli/client/dev_record.py`.
"""
