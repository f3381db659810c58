"""How an `hdfs` URL and Hadoop's settings become a place."""

from __future__ import annotations

import errno
import pickle

import pytest

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.storage.hdfs import HdfsPlace, _as_os_error, hdfs_place


def test_a_name_node_needs_no_setting():
    assert hdfs_place("hdfs://node:8020/a/b/", {}.get) == HdfsPlace("node:8020", "a/b")


def test_a_name_service_brings_its_nodes_and_nothing_else():
    settings = {
        "dfs.replication": "2",
        "dfs.ha.namenodes.data": "nn1, nn2",
        "dfs.namenode.rpc-address.data.nn1": "one:8020",
        "dfs.namenode.rpc-address.data.nn2": "two:8020",
        "dfs.namenode.rpc-address.other.nn1": "three:8020",
        "fs.s3a.secret.key": "hush",
    }
    place = hdfs_place("hdfs://data/count", settings.get, "alice")

    assert dict(place.settings) == {
        key: value for key, value in settings.items() if "other" not in key and "s3a" not in key
    }
    assert place.user == "alice"
    assert pickle.loads(pickle.dumps(place)) == place


def test_with_kerberos_the_ticket_says_who_it_is():
    assert hdfs_place("hdfs://data/a", {"hadoop.security.authentication": "kerberos"}.get, "alice").user is None


@pytest.mark.parametrize("url", ["hdfs:///a", "hdfs://node", "hdfs://node/"])
def test_a_url_without_a_name_node_or_a_folder_is_refused(url: str):
    with pytest.raises(SetupError, match="must name a name node or a name service, and a folder"):
        hdfs_place(url, {}.get)


@pytest.mark.parametrize(
    ("said", "number", "text"),
    [
        (
            'RPCError("org.apache.hadoop.security.AccessControlException", "Permission denied: user=bob\\n\\tat x")',
            errno.EACCES,
            "hdfs://n/f: AccessControlException: Permission denied: user=bob",
        ),
        (
            'RPCError("org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", "The quota of /a is hit\\n\\tat")',
            errno.EDQUOT,
            "hdfs://n/f: DSQuotaExceededException: The quota of /a is hit",
        ),
        ("something else", errno.EIO, "hdfs://n/f: something else"),
        ("", errno.EIO, "hdfs://n/f: RuntimeError"),
    ],
)
def test_an_error_of_a_server_is_an_os_error_with_one_line(said: str, number: int, text: str):
    error = _as_os_error(RuntimeError(said), "hdfs://n/f")
    assert (error.errno, error.strerror) == (number, text)


@pytest.mark.parametrize("kind", [FileNotFoundError, FileExistsError, PermissionError])
def test_so_is_one_that_the_client_has_a_kind_for(kind: type[OSError]):
    error = _as_os_error(kind("/f/x is as it is\n\tat org.apache.hadoop.X"), "hdfs://n/f")
    assert type(error) is kind
    assert (error.strerror, error.filename) == ("hdfs://n/f: /f/x is as it is", "hdfs://n/f")
