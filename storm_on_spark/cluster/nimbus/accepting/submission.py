"""How a topology is submitted, in steps from which the next leader continues when this one dies.

Each is written under the leader's fence.

    step          in ZooKeeper when it is done                    if the leader dies then
    storing       counter, names/<name>,                          the next one removes it; the client sends it again
                  submissions/<key> (storing)
    uploaded      nothing more; the code is in the distributor    as before
    replicating   code/<id>, submissions/<key> (replicating)      the next one continues, once it has the code
    activated     storms/<id>; submissions/<key> is gone          the next one schedules it
    assigned      assignments/<id>                                nothing is left to do

The client hears that its topology is accepted when it is activated. Until then it asks again; if no Nimbus has the
code any more, it sends everything to the leader again under the same key. A submission whose code no Nimbus has is
removed after `nimbus.inbox.jar.expiration.secs`.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NoReturn

import msgspec

from storm_on_spark.api.config import Config, validate_conf
from storm_on_spark.api.config.secrets import without_secrets
from storm_on_spark.api.errors import AlreadyAliveError, ConfigError, InvalidTopologyError
from storm_on_spark.cluster.code.checksums import PLAN, artifacts_of, check_artifacts, read_verified
from storm_on_spark.cluster.code.distributor import CodeDistributor, Metafile
from storm_on_spark.cluster.errors import ClusterError, CodeError, ConflictError, RecordError
from storm_on_spark.cluster.nimbus.accepting.storage import checkpoint_of, warnings_of
from storm_on_spark.cluster.nimbus.settings import NimbusSettings, ReplicationSettings
from storm_on_spark.cluster.paths import CODE, COUNTER, NAMES, STORMS, SUBMISSIONS
from storm_on_spark.cluster.plan_summary import MAX_TASKS, PlanSummary
from storm_on_spark.cluster.records import ArtifactInfo, CodeManifest, NameClaim, StormBase, Submission
from storm_on_spark.cluster.state import (
    Change,
    Check,
    ClusterSnapshot,
    ClusterState,
    Create,
    Delete,
    Fence,
    Put,
)
from storm_on_spark.launch.settings import CheckpointSettings

logger = logging.getLogger(__name__)

Step = Literal["received", "storing", "uploaded", "replicating", "replicated", "activated", "assigned"]
"""`received`: nothing is written yet; `replicated`: the wait for copies is over."""
OnStep = Callable[[Step, str], object]
"""Called with each step's name and the topology's id, right after it."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,149}")
_KEY = re.compile(r"[0-9a-f]{32}")
_ATTEMPTS: Final = 10


class SubmitRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What a client posts when all artifacts are uploaded."""

    key: str
    """32 hexadecimal digits, random: the same submission sent again is the same."""
    name: str
    conf: dict[str, Any] = msgspec.field(default_factory=dict)
    owner: str = ""
    initial_status: Literal["ACTIVE", "INACTIVE"] = "ACTIVE"
    artifacts: tuple[ArtifactInfo, ...]


class SubmissionState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The progress of a submission."""

    key: str
    topology_id: str
    name: str
    step: Literal["storing", "replicating", "submitted"]
    replicas: int
    wanted: int
    """`topology.min.replication.count`."""
    waited_secs: float
    max_wait_secs: int
    """`topology.max.replication.wait.time.sec`; -1 is for ever."""
    warnings: tuple[str, ...] = ()
    """A message for its client."""


def check_key(key: str) -> str:
    """Returns a submission's key if it is one.

    Raises:
        ConfigError: it isn't.
    """
    if not _KEY.fullmatch(key):
        raise ConfigError(f"{key[:80]!r} is not the key of a submission: give 32 hexadecimal digits in lower case")
    return key


def check_name(name: str) -> str:
    """Returns a topology's name if it can be one; it is part of paths and URLs.

    Raises:
        InvalidTopologyError: it can't.

    Example:
        >>> check_name("a/b")
        Traceback (most recent call last):
        ...
        storm_on_spark.api.errors.InvalidTopologyError: 'a/b' can't be the name of a topology: 1 to 150 letters, \
digits, '-' and '_', no '-' in front
    """
    if not _NAME.fullmatch(name):
        raise InvalidTopologyError(
            f"{name[:160]!r} can't be the name of a topology: 1 to 150 letters, digits, '-' and '_', no '-' in front"
        )
    return name


def name_of(topology_id: str) -> str:
    """Returns the name in an id `name-counter-epochseconds`.

    Example:
        >>> name_of("word-count-1-1700000000")
        'word-count'
    """
    return topology_id.rsplit("-", 2)[0]


def is_replicated(submission: Submission, replicas: int, now: float) -> bool:
    """Returns whether a submission may continue: there are enough copies, or it has waited as long as it may."""
    wanted = ReplicationSettings.of(submission.conf)
    if replicas >= wanted.min_count:
        return True
    return wanted.max_wait_secs >= 0 and now - submission.submitted_at >= wanted.max_wait_secs


def state_of(snapshot: ClusterSnapshot, key: str, now: float) -> SubmissionState | None:
    """Returns the progress of a submission; None if there is none with that key."""
    submission = snapshot.submissions.get(key)
    base: Submission | StormBase | None = submission
    if submission is None:
        base = next((base for base in snapshot.storms.values() if base.submission_key == key), None)
    if base is None:
        return None
    wanted = ReplicationSettings.of(base.conf)
    code = snapshot.code.get(base.topology_id)
    return SubmissionState(
        key=key,
        topology_id=base.topology_id,
        name=base.name,
        step="submitted" if submission is None else submission.step,
        replicas=0 if code is None else len(code.replicas),
        wanted=wanted.min_count,
        waited_secs=max(0.0, now - base.submitted_at),
        max_wait_secs=wanted.max_wait_secs,
        warnings=warnings_of(
            CheckpointSettings.of(base.conf).folder or "",
            {supervisor.host for supervisor in snapshot.supervisors.values()},
        ),
    )


class Submissions:
    """Takes topologies in; of use while this Nimbus leads.

    Args:
        state: ZooKeeper.
        distributor: where the code goes.
        address: of this Nimbus.
        settings: of this Nimbus.
        defaults: every topology's: the keys `topology.` of this Nimbus' configuration.
        checkpoints: folder for the checkpoints of those that name none.
        wake: makes the leader call `advance` soon.
        on_step: for tests of what happens when a leader dies.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        state: ClusterState,
        distributor: CodeDistributor,
        address: str,
        settings: NimbusSettings,
        defaults: Mapping[str, Any],
        checkpoints: Path,
        wake: Callable[[], object],
        on_step: OnStep = lambda step, topology_id: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self.distributor = distributor
        self._address = address
        self._defaults = {key: value for key, value in defaults.items() if key.startswith("topology.")}
        self._settings = settings
        self._checkpoints = checkpoints
        self._wake = wake
        self._on_step = on_step
        self._now = now
        self._lock = threading.Lock()
        #: Ids of the topologies that are being taken in here; each belongs to one thread.
        self._busy: set[str] = set()

    def is_busy(self, topology_id: str) -> bool:
        """Returns whether a thread is taking that topology in at this moment."""
        return topology_id in self._busy

    def accept(self, fence: Fence, request: SubmitRequest, folder: Path) -> str:
        """Takes a topology in up to the step `replicating`; `advance` does the rest.

        Args:
            fence: the leadership.
            request: what the client wants.
            folder: where its artifacts are.

        Returns:
            The topology's id.

        Raises:
            AlreadyAliveError: another topology has the name.
            ConfigError, InvalidTopologyError, RecordError: the request makes no sense.
            CodeError: the artifacts are not what the request says, or can't be kept.
            FencedError: this Nimbus leads no longer; nothing was lost.
        """
        check_key(request.key)
        check_name(request.name)
        validate_conf(request.conf, f'topology "{request.name}"')
        done = self._done(request)
        if done is not None:
            return done
        self._check_free(request.name, request.key)
        plan = self._check_artifacts(request, folder)
        self._on_step("received", "")
        with self._lock:
            done = self._done(request)
            if done is not None:
                return done
            submission, version = self._begin(fence, request)
            topology_id = submission.topology_id
            if topology_id in self._busy:
                raise ConflictError(f"submission {request.key} is already being processed")
            self._busy.add(topology_id)
        try:
            self._on_step("storing", topology_id)
            metafile = self.distributor.upload(folder, topology_id)
            self._on_step("uploaded", topology_id)
            self._keep(fence, submission, version, metafile, plan)
            self._state.create_ephemeral(b"", CODE, topology_id, self._address)
            self._on_step("replicating", topology_id)
        finally:
            self._busy.discard(topology_id)
            # No round of the leader has touched it in between.
            self._wake()
        return topology_id

    def advance(self, fence: Fence, snapshot: ClusterSnapshot) -> bool:
        """Takes every submission that is ready one step further.

        Returns:
            Whether there is a new topology to schedule.
        """
        activated = False
        for key, submission in snapshot.submissions.items():
            with self._lock:
                # Taken in here at this moment, or done in the meantime.
                if submission.topology_id in self._busy:
                    continue
            try:
                if submission.step == "storing":
                    self._forget(fence, submission, snapshot.versions[SUBMISSIONS][key])
                elif self._is_ready(submission, snapshot):
                    self._activate(fence, submission, snapshot.versions[SUBMISSIONS][key])
                    activated = True
                elif self._is_lost(submission, snapshot):
                    self._forget(fence, submission, snapshot.versions[SUBMISSIONS][key])
            except (ConflictError, CodeError) as error:
                logger.info("Submission %s: %s", key, error)
        return activated

    def _is_ready(self, submission: Submission, snapshot: ClusterSnapshot) -> bool:
        """Whether a submission can become a topology: its code is here, and copied enough."""
        code = snapshot.code.get(submission.topology_id)
        if code is None or not self.distributor.holds(submission.topology_id, code.manifest.metafile):
            return False
        replicas = self.distributor.get_replication_count(submission.topology_id)
        return is_replicated(submission, replicas, self._now())

    def _is_lost(self, submission: Submission, snapshot: ClusterSnapshot) -> bool:
        """Whether no Nimbus has its code, and neither its client nor a Nimbus with it came back for a long time."""
        code = snapshot.code.get(submission.topology_id)
        return (
            code is None or not code.replicas
        ) and self._now() - submission.submitted_at >= self._settings.artifact_expiration_secs

    def next_deadline(self, snapshot: ClusterSnapshot) -> float | None:
        """Returns when the next wait of a submission ends, in seconds since the epoch."""
        waits = (
            (submission.submitted_at, ReplicationSettings.of(submission.conf).max_wait_secs)
            for submission in snapshot.submissions.values()
            if submission.step == "replicating"
        )
        return min((since + longest for since, longest in waits if longest >= 0), default=None)

    def _done(self, request: SubmitRequest) -> str | None:
        """Returns the id if this submission was accepted before, or needs nothing more from its client."""
        found = self._state.get(Submission, SUBMISSIONS, request.key)
        if found is not None and found[0].step == "replicating":
            code = self._state.get(CodeManifest, CODE, found[0].topology_id)
            if code is not None and self.distributor.holds(found[0].topology_id, code[0].metafile):
                return found[0].topology_id
        for topology_id in self._state.children(STORMS):
            if name_of(topology_id) != request.name:
                continue
            with contextlib.suppress(RecordError):
                base = self._state.get(StormBase, STORMS, topology_id)
                if base is not None and base[0].submission_key == request.key:
                    return topology_id
        return None

    def _check_free(self, name: str, key: str) -> int | None:
        """Checks that no other topology has a name.

        Returns:
            The version of a claim to it that has outlived its topology; None without a claim.

        Raises:
            AlreadyAliveError: another has it.
        """
        mine = self._state.get(Submission, SUBMISSIONS, key)
        if mine is not None and mine[0].name == name:
            # Sent again, to a leader that has nothing of its code.
            return None
        claim = self._state.get(NameClaim, NAMES, name)
        if claim is not None and not self.is_gone(claim[0].topology_id):
            self._refuse(name, claim[0].topology_id)
        return None if claim is None else claim[1]

    def _refuse(self, name: str, topology_id: str) -> NoReturn:
        try:
            base = self._state.get(StormBase, STORMS, topology_id)
        except RecordError as error:
            raise AlreadyAliveError(f'topology "{name}" already exists as {topology_id}: {error}') from error
        if base is None:
            raise AlreadyAliveError(f'topology "{name}" is being submitted already, as {topology_id}')
        raise AlreadyAliveError(
            f'topology "{name}" is {base[0].status} already, as {topology_id}; kill it first or choose another name'
        )

    def is_gone(self, topology_id: str) -> bool:
        """Returns whether there is no such topology, and none is coming.

        A snapshot can miss it: it may read one folder before the topology arrives there, and the other after it has
        left. Read in the order in which a topology moves, it is found.
        """
        for key in self._state.children(SUBMISSIONS):
            try:
                submission = self._state.get(Submission, SUBMISSIONS, key)
            except RecordError:
                return False
            if submission is not None and submission[0].topology_id == topology_id:
                return False
        return self._state.get_bytes(STORMS, topology_id) is None

    def release(self, name: str, topology_id: str) -> tuple[Change, ...]:
        """Returns the operations by which the transaction that removes a topology frees its name."""
        with contextlib.suppress(RecordError):
            claim = self._state.get(NameClaim, NAMES, name)
            if claim is not None and claim[0].topology_id == topology_id:
                return (Delete((NAMES, name), claim[1]),)
        return ()

    def _begin(self, fence: Fence, request: SubmitRequest) -> tuple[Submission, int]:
        """Returns the submission in ZooKeeper and its version; creates it if there is none."""
        for _ in range(_ATTEMPTS):
            found = self._state.get(Submission, SUBMISSIONS, request.key)
            if found is not None:
                return found
            stale = self._check_free(request.name, request.key)
            counter = self._state.get_bytes(COUNTER)
            if counter is None or not counter[0].isdigit():
                given = None if counter is None else counter[0]
                raise ClusterError(f"{COUNTER} in ZooKeeper must be a number, not {given!r}")
            number, now = int(counter[0]) + 1, self._now()
            topology_id = f"{request.name}-{number}-{int(now)}"
            submission = Submission(
                key=request.key,
                topology_id=topology_id,
                name=request.name,
                owner=request.owner,
                conf=self._conf(request, topology_id),
                initial_status=request.initial_status,
                submitted_at=now,
                step="storing",
            )
            # Of several submissions of one name, in any thread or Nimbus, one makes the claim.
            claim: Change = Create((NAMES, request.name), NameClaim(topology_id=topology_id))
            if stale is not None:
                claim = Put((NAMES, request.name), NameClaim(topology_id=topology_id), stale)
            try:
                versions = self._state.commit(
                    fence,
                    Put((COUNTER,), str(number).encode(), counter[1]),
                    Create((SUBMISSIONS, request.key), submission),
                    claim,
                )
            except ConflictError:
                continue
            return submission, versions[1]
        raise ConflictError(f"submission {request.key} can't be recorded: other writers keep changing the counter")

    def _conf(self, request: SubmitRequest, topology_id: str) -> dict[str, Any]:
        conf = {**self._defaults, **{key: value for key, value in request.conf.items() if value is not None}}
        if not CheckpointSettings.of(conf).folder:
            folder = self._settings.checkpoint_dir
            conf[Config.TOPOLOGY_CHECKPOINT_DIR] = checkpoint_of(topology_id, folder, self._checkpoints)
        return without_secrets(conf)

    def _check_artifacts(self, request: SubmitRequest, folder: Path) -> PlanSummary | None:
        """Returns what the topology compiles to, if that is among its artifacts."""
        said = {info.name: info for info in check_artifacts(request.artifacts, f"submission {request.key}")}
        missing = [name for name in said if not (folder / name).exists()]
        if missing:
            # The artifacts went to a former leader, all or some of them.
            raise ConflictError(f"submission {request.key}: {', '.join(missing)} did not arrive; send all again")
        here = {info.name: info for info in artifacts_of(folder)}
        if here != said:
            wrong = sorted(name for name in {*here, *said} if here.get(name) != said.get(name))
            raise CodeError(
                f"submission {request.key}: these files differ from what the request announced: {', '.join(wrong)}"
            )
        if PLAN not in here:
            return None
        plan = PlanSummary.of(read_verified(folder, here[PLAN]), PLAN)
        return plan if plan.total_tasks <= MAX_TASKS else None

    def _keep(
        self, fence: Fence, submission: Submission, version: int, metafile: str, plan: PlanSummary | None
    ) -> None:
        """Records where the code is; after a client sent it again, the new place replaces the old one."""
        topology_id = submission.topology_id
        manifest = CodeManifest(
            topology_id=topology_id,
            artifacts=Metafile.of(metafile, topology_id).artifacts,
            uploader=self._address,
            uploaded_at=self._now(),
            distributor=self.distributor.name,
            metafile=metafile,
            plan=plan,
        )
        there = self._state.get(CodeManifest, CODE, topology_id)
        code: Change = Create((CODE, topology_id), manifest)
        if there is not None:
            code = Put((CODE, topology_id), manifest, there[1])
        next_step = msgspec.structs.replace(submission, step="replicating")
        self._state.commit(fence, code, Put((SUBMISSIONS, submission.key), next_step, version))

    def _activate(self, fence: Fence, submission: Submission, version: int) -> None:
        self._on_step("replicated", submission.topology_id)
        base = StormBase(
            topology_id=submission.topology_id,
            name=submission.name,
            owner=submission.owner,
            status=submission.initial_status,
            submitted_at=submission.submitted_at,
            launch=1,
            conf=submission.conf,
            submission_key=submission.key,
        )
        self._state.commit(
            fence,
            Check((CODE, submission.topology_id)),
            Create((STORMS, submission.topology_id), base),
            Delete((SUBMISSIONS, submission.key), version),
        )
        logger.info("Topology %s is %s", submission.topology_id, base.status)
        self._on_step("activated", submission.topology_id)

    def _forget(self, fence: Fence, submission: Submission, version: int) -> None:
        # In this order: its id is never given again, so a late call deletes nothing of another topology.
        name = self.release(submission.name, submission.topology_id)
        self._state.commit(fence, Delete((SUBMISSIONS, submission.key), version), *name)
        logger.info("Removed submission %s: its code was never uploaded", submission.key)
        self.distributor.cleanup(submission.topology_id)
