"""The admin of streams by description: takes requests, places modules (`placement.py`), and answers."""
