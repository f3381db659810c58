"""Artifacts: a topology compiled into a folder that `spark-submit` can run and a Nimbus can distribute.

layout.py     the folder's files, and the record about them
packages.py   Python packages that travel in it
submitting.py the line for spark-submit, jars, README
compiling.py  writes the folder
opening.py    takes the code for a Nimbus out of it
main.py       copied into it: the program that spark-submit starts, of the standard library alone
start.py      called by that program: runs the topology
"""
