"""A driver whose checkpoint in a store is put back as it was before its last run, beside files that are newer.

`python putting_back.py SETTINGS.json`; prints one line of JSON: what became of each run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from storm_on_spark import CheckpointError
from storm_on_spark.connectors.files import FileBolt
from storm_on_spark.runtime.storage import Storage
from storm_on_spark.runtime.storage.hdfs import hdfs_place
from storm_on_spark.runtime.storage.s3 import s3_place
from storm_on_spark.spark.session import local_session, stop_session
from storm_on_spark.testing import run_topology


def copy_of(store: Storage) -> dict[str, bytes]:
    return {found.name: store.read(found.name) for found in store.list_folder(deep=True)}


def put_back(store: Storage, copy: dict[str, bytes]) -> None:
    for found in store.list_folder(deep=True):
        store.delete(found.name)
    for name, data in copy.items():
        store.put(name, data)


def main(path: str) -> None:
    from topologies import numbered

    settings = json.loads(Path(path).read_text())
    place_of = hdfs_place if settings["checkpoint"].startswith("hdfs:") else s3_place
    store = place_of(settings["checkpoint"], settings["client"].get).open()
    spark = local_session("local[2]", settings["conf"], settings["checkpoint"])
    topology = numbered.numbers_to(FileBolt(settings["folder"], ["n"]))
    said = []

    def run(limit: int) -> None:
        conf = {"topology.checkpoint.dir": settings["checkpoint"], "test.limit": limit, **settings["conf"]}
        try:
            run_topology(topology, conf=conf, spark=spark, capture=[])
        except CheckpointError as error:
            said.append(str(error))
        else:
            said.append("ran")

    try:
        run(20)
        older = copy_of(store)
        run(40)
        newer = copy_of(store)
        put_back(store, older)
        run(60)
        put_back(store, newer)
        run(50)
    finally:
        stop_session(spark)
    print(json.dumps(said))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    main(sys.argv[1])
