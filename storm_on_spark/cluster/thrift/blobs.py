"""Storm's blob store as clients see it here: always empty, and refused to be filled.

A topology's code is one archive, which Nimbuses replicate. Files that it reads go into that archive. So there is no
store beside it: each method answers with the exception that Storm declares for it.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from storm_on_spark.cluster.thrift.interface import interface

INSTEAD: Final = "this cluster has no blob store: put files into the folder resources of the topology's jar"


class NoBlobs:
    """The methods of blobs, under Storm's names."""

    def listBlobs(self, session: str) -> Any:
        """Returns that there are none."""
        return interface().ListBlobsResult(keys=[], session="")

    def isRemoteBlobExists(self, blobKey: str) -> bool:
        """Returns that there is none."""
        return False

    def beginCreateBlob(self, key: str, meta: Any) -> str:
        """Refuses it."""
        raise interface().AuthorizationException(msg=f"the blob {key!r:.200} can't be created: {INSTEAD}")

    def beginUpdateBlob(self, key: str) -> str:
        """Refuses it."""
        _missing(key)

    def getBlobMeta(self, key: str) -> Any:
        """Refuses it."""
        _missing(key)

    def setBlobMeta(self, key: str, meta: Any) -> None:
        """Refuses it."""
        _missing(key)

    def beginBlobDownload(self, key: str) -> Any:
        """Refuses it."""
        _missing(key)

    def deleteBlob(self, key: str) -> None:
        """Refuses it."""
        _missing(key)

    def getBlobReplication(self, key: str) -> int:
        """Refuses it."""
        _missing(key)

    def updateBlobReplication(self, key: str, replication: int) -> int:
        """Refuses it."""
        _missing(key)

    def uploadBlobChunk(self, session: str, chunk: bytes) -> None:
        """Refuses it: there are no sessions, as none could be begun."""
        _no_session(session)

    def finishBlobUpload(self, session: str) -> None:
        """Refuses it."""
        _no_session(session)

    def cancelBlobUpload(self, session: str) -> None:
        """Refuses it."""
        _no_session(session)

    def downloadBlobChunk(self, session: str) -> bytes:
        """Refuses it."""
        _no_session(session)


def _missing(key: str) -> NoReturn:
    raise interface().KeyNotFoundException(msg=f"there is no blob {key!r:.200}; {INSTEAD}")


def _no_session(session: str) -> NoReturn:
    raise interface().AuthorizationException(msg=f"there is no session {session!r:.200}; {INSTEAD}")
