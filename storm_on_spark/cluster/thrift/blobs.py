"""Storm's blob store as clients see it here: always empty, and refused to be filled.

A topology's code is one archive, which Nimbuses replicate. Files that it reads go into that archive. So there is no
store beside it: each method answers with the exception that Storm declares for it.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from storm_on_spark.cluster.thrift.interface import interface

INSTEAD: Final = "this cluster has no blob store: put files into the folder resources of the topology's jar"


def _missing(self: object, key: str, *_: object) -> NoReturn:
    raise interface().KeyNotFoundException(msg=f"there is no blob {key!r:.200}; {INSTEAD}")


def _no_session(self: object, session: str, *_: object) -> NoReturn:
    # None could be begun.
    raise interface().AuthorizationException(msg=f"there is no session {session!r:.200}; {INSTEAD}")


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

    beginUpdateBlob = getBlobMeta = setBlobMeta = beginBlobDownload = deleteBlob = _missing
    getBlobReplication = updateBlobReplication = _missing
    uploadBlobChunk = finishBlobUpload = cancelBlobUpload = downloadBlobChunk = _no_session
