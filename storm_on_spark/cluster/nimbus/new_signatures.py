"""Signs the records in ZooKeeper with the present token, after a new one was put in front.

A record's content decides nothing: only a valid record is signed again, unchanged; credentials are encrypted again,
too. A record that is refused stays as it is.
"""

from __future__ import annotations

import logging
from typing import Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.credentials import encrypted_anew
from storm_on_spark.cluster.errors import ConflictError, RecordError
from storm_on_spark.cluster.paths import ASSIGNMENTS, CHECKPOINTS, CODE, CREDENTIALS, STORMS, SUBMISSIONS
from storm_on_spark.cluster.records import (
    Assignment,
    CheckpointInfo,
    CodeManifest,
    Record,
    StoredCredentials,
    StormBase,
    Submission,
)
from storm_on_spark.cluster.state import ClusterState, Fence, Put

logger = logging.getLogger(__name__)

_SIGNED: Final[dict[str, type[Record]]] = {
    SUBMISSIONS: Submission,
    STORMS: StormBase,
    CODE: CodeManifest,
    CHECKPOINTS: CheckpointInfo,
    ASSIGNMENTS: Assignment,
    CREDENTIALS: StoredCredentials,
}


def sign_anew(state: ClusterState, fence: Fence) -> tuple[int, int]:
    """Signs the records of topologies that another token than the first has signed.

    A driver and its supervisor go by what an assignment says, so that they don't notice.

    Args:
        state: ZooKeeper, with the keyring.
        fence: the leadership.

    Returns:
        How many were signed, and how many are refused, damaged or changed hands just then.

    Raises:
        FencedError: this Nimbus leads no longer.
        UnavailableError: ZooKeeper is away.
    """
    keyring = state.session.keyring
    if not keyring.mixed:
        # Every one would have to be read.
        return 0, 0
    signed = left = 0
    for folder, type_ in _SIGNED.items():
        for name in state.children(folder):
            found = state.get_bytes(folder, name)
            if found is None or not found[0]:
                continue
            try:
                path = state.session.paths.of(folder, name)
                opened = keyring.open(type_, found[0], path)
                if not opened.current:
                    record = encrypted_anew(opened.record, path, keyring)
                    state.commit(fence, Put((folder, name), record, found[1]))
                    signed += 1
            except (RecordError, SetupError) as error:
                logger.error("Not signed again: %s", error)
                left += 1
            except ConflictError:
                left += 1
    if signed or left:
        logger.info("%d records were signed with the first token, %d were not", signed, left)
    return signed, left
