"""What people see of a running topology: its counters, its windows, and the micro-batch in hand.

Reports of tasks, outcomes of messages and the progress of Spark come in; numbers for status, heartbeats and pages go
out, and the file from which the next start continues the windows. Begin with `counters.py`; nothing here decides
anything.
"""
