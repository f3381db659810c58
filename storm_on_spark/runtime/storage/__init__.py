"""Storage of a topology's own files: one small interface of immutable objects, and its implementations.

Names and bytes come in, and objects that are written once, whole or not at all, go out. Nothing here knows what is in
them. Begin with `interface.py`.

interface   what every store offers, and the law of names by which writers stay out of each other's way
within      a folder of a store, as a store
local       a mounted POSIX file system
arrow       what `pyarrow.fs` reaches: S3, GCS, Azure
s3          S3, set up as Hadoop's `s3a` is
hdfs        HDFS
place       where a store is: a value that can be sent to other processes, and opened there
"""

from __future__ import annotations

from storm_on_spark.runtime.storage.folder import Folder, as_storage, inside, name_of
from storm_on_spark.runtime.storage.interface import Storage, StoredObject
from storm_on_spark.runtime.storage.local import LocalStorage
from storm_on_spark.runtime.storage.place import LocalPlace, PlaceWithin, StoragePlace
from storm_on_spark.runtime.storage.within import within

__all__ = [
    "Folder",
    "LocalPlace",
    "LocalStorage",
    "PlaceWithin",
    "Storage",
    "StoragePlace",
    "StoredObject",
    "as_storage",
    "inside",
    "name_of",
    "within",
]
