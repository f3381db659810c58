"""Storage of a topology's own files: one small interface of immutable objects, and its implementations.

Names and bytes come in; objects go out that are written once, and either fully or not at all. Their contents are opaque
here. Begin with `interface.py`.

interface   the operations of every store, and the rule of names that keeps writers apart
within      a folder of a store, as a store
local       a mounted POSIX file system
arrow       stores that `pyarrow.fs` reaches: S3, GCS, Azure
s3          S3, configured like Hadoop's `s3a`
hdfs        HDFS
place       the address of a store: a value that can be sent to other processes and opened there
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
