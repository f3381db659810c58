"""The methods of Storm's Nimbus that are answered, and the messages around them.

Every Nimbus answers reads. What changes a topology is the leader's: another Nimbus answers with a sentence, as Storm's
does, and `getLeader` says where the leader is.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from storm_on_spark.api.config.secrets import hidden, scrubbed
from storm_on_spark.api.errors import AlreadyAliveError, ConfigError, InvalidTopologyError, NotAliveError, StormError
from storm_on_spark.cluster.errors import ForbiddenError, RecordError, TransitionError, UnavailableError
from storm_on_spark.cluster.http.frames import MOST_BYTES, FrameError, FrameService
from storm_on_spark.cluster.nimbus.accepting.submission import check_name
from storm_on_spark.cluster.nimbus.control import Control
from storm_on_spark.cluster.records import StormBase
from storm_on_spark.cluster.rest.pages import topology_page
from storm_on_spark.cluster.rest.picture.snapshot import Picture
from storm_on_spark.cluster.security.permissions import CHANGE, CLUSTER, READ, SEE, THRIFT, Who
from storm_on_spark.cluster.thrift import structs, submissions
from storm_on_spark.cluster.thrift.blobs import NoBlobs
from storm_on_spark.cluster.thrift.checks import check_call
from storm_on_spark.cluster.thrift.interface import interface
from storm_on_spark.cluster.thrift.log_levels import log_changes, log_config
from storm_on_spark.cluster.thrift.login import DigestLogin
from storm_on_spark.cluster.thrift.refused import Refused
from storm_on_spark.cluster.thrift.settings import ThriftSettings
from storm_on_spark.cluster.thrift.submissions import parsed
from storm_on_spark.cluster.thrift.uploads import Uploads
from storm_on_spark.runtime.samples.switch import SAMPLING_PCT

logger = logging.getLogger(__name__)

_BY: Final = "a Thrift client"
"""In the list of changes."""
_ELSEWHERE: Final = "use storm-spark, or the REST interface of the same address"


class Handler(NoBlobs, Refused):
    """The methods, under Storm's names. Any thread may call it.

    Args:
        control: the Nimbus.
        user: the user who asks; None if there is no login.
        uploads: files that are being uploaded; none yet for None.
    """

    def __init__(self, control: Control, user: str | None = None, uploads: Uploads | None = None) -> None:
        self._control = control
        self._uploads = Uploads() if uploads is None else uploads
        self._owner = user
        self._by = _BY if user is None else user

    def asked_by(self, user: str | None) -> Allowed:
        """Returns the methods, limited to what a user may do.

        Args:
            user: the user who logged in; None if there is no login.
        """
        return Allowed(Handler(self._control, user, self._uploads), Who(user or "", trusted=user is None))

    def check(self, method: str, arguments: tuple[Any, ...], who: Who) -> None:
        """Refuses a user who may not use a method.

        Raises:
            ForbiddenError: it is refused.
        """
        # A method without a row is for admins, unless it refuses every user, as inherited methods do.
        right = THRIFT.get(method, CLUSTER if method in vars(Handler) else READ)
        topology_id = ""
        if right in (SEE, CHANGE) and arguments and isinstance(arguments[0], str):
            storms, name = self._control.snapshot().storms, arguments[0]
            topology_id = name if name in storms else next((i for i, base in storms.items() if base.name == name), "")
        if right not in ("open", READ):
            self._control.check(right, who, topology_id, method)

    def getClusterInfo(self) -> Any:
        """Returns supervisors, topologies and Nimbuses."""
        return structs.cluster_summary(self._picture())

    def getLeader(self) -> Any:
        """Returns the Nimbus that leads.

        Raises:
            UnavailableError: none is known at the moment.
        """
        picture = self._picture()
        leader = picture.snapshot.leader
        nimbus = None if leader is None else picture.snapshot.nimbuses.get(leader.address)
        if nimbus is None:
            raise UnavailableError(f"Nimbus {self._control.address} knows of no leader; try again")
        return structs.nimbus_summary(picture, nimbus)

    def getTopologySummaries(self) -> list[Any]:
        """Returns all topologies."""
        return structs.topology_summaries(self._picture())

    def getTopologySummaryByName(self, name: str) -> Any:
        """Returns a topology in short."""
        return structs.topology_summary(self._picture(), self._named(name))

    def getTopologySummary(self, id: str) -> Any:  # noqa: A002
        """Returns a topology in short."""
        return structs.topology_summary(self._picture(), self._control.topology(_text(id, "id")))

    def getTopologyInfo(self, id: str) -> Any:  # noqa: A002
        """Returns a topology with its executors and errors."""
        return self._info(self._control.topology(_text(id, "id")))

    def getTopologyInfoByName(self, name: str) -> Any:
        """Returns a topology with its executors and errors."""
        return self._info(self._named(name))

    def getTopologyInfoWithOpts(self, id: str, options: Any) -> Any:  # noqa: A002
        """Returns the same, with all, the last or none of each component's errors."""
        return self._info(self._control.topology(_text(id, "id")), _most_errors(options))

    def getTopologyInfoByNameWithOpts(self, name: str, options: Any) -> Any:
        """Returns the same, with all, the last or none of each component's errors."""
        return self._info(self._named(name), _most_errors(options))

    def getTopologyConf(self, id: str) -> str:  # noqa: A002
        """Returns a topology's configuration as JSON, without secrets."""
        return json.dumps(hidden(self._control.topology(_text(id, "id")).conf))

    def getTopology(self, id: str) -> Any:  # noqa: A002
        """Returns a topology that was submitted over Thrift, as it was submitted."""
        return submissions.submitted(self._control, self._control.topology(_text(id, "id")).topology_id)

    def getUserTopology(self, id: str) -> Any:  # noqa: A002
        """Returns the same: system components are not part of a topology here."""
        return self.getTopology(id)

    def getNimbusConf(self) -> str:
        """Returns this Nimbus' configuration as JSON, without secrets."""
        return json.dumps(hidden(self._control.conf))

    def isTopologyNameAllowed(self, name: str) -> bool:
        """Returns whether a topology of that name could be submitted."""
        try:
            check_name(_text(name, "name"))
        except InvalidTopologyError:
            return False
        return all(base.name != name for base in self._control.snapshot().storms.values())

    def killTopology(self, name: str) -> None:
        """Ends a topology, after its message timeout."""
        self._control.kill(self._named(name).topology_id, None, self._by)

    def killTopologyWithOpts(self, name: str, options: Any) -> None:
        """Ends a topology."""
        self._control.kill(self._named(name).topology_id, None if options is None else options.wait_secs, self._by)

    def activate(self, name: str) -> None:
        """Lets a topology's spouts emit."""
        self._control.activate(self._named(name).topology_id, self._by)

    def deactivate(self, name: str) -> None:
        """Stops a topology's spouts from emitting."""
        self._control.deactivate(self._named(name).topology_id, self._by)

    def debug(self, name: str, component: str | None, enable: bool, percent: float) -> None:  # Storm's
        """Samples a share of the tuples of a component, or of all; 0 or None is Storm's 10 %."""
        share = (percent or SAMPLING_PCT) if enable else 0.0
        self._control.sample(self._named(name).topology_id, component or "", share, self._by)

    def rebalance(self, name: str, options: Any) -> None:
        """Restarts a topology, with other workers, executors or configuration.

        Raises:
            InvalidTopologyError: it can't have those.
        """
        options = interface().RebalanceOptions() if options is None else options
        if options.topology_resources_overrides:
            raise InvalidTopologyError("resources of components can't be set: Spark places the tasks")
        conf = parsed(options.topology_conf_overrides, "topology_conf_overrides")
        if options.num_workers is not None:
            conf["topology.workers"] = options.num_workers
        executors = {_text(key, "num_executors"): count for key, count in (options.num_executors or {}).items()}
        self._control.rebalance(self._named(name).topology_id, options.wait_secs, conf, executors, by=self._by)

    def setLogConfig(self, name: str, config: Any) -> None:
        """Changes levels of a topology's loggers; the name is an id, as Storm's clients send one."""
        topology_id = self._by_id_or_name(name).topology_id
        self._control.set_log_levels(topology_id, log_changes(config, self._control.now()), self._by)

    def getLogConfig(self, name: str) -> Any:
        """Returns the levels of a topology's loggers that were changed."""
        return log_config(self._control.log_levels(self._by_id_or_name(name).topology_id))

    def uploadNewCredentials(self, name: str, creds: Any) -> None:
        """Gives a topology new credentials, in place of those that it has.

        Raises:
            InvalidTopologyError: they are not credentials.
        """
        topology_id = self._named(name).topology_id
        try:
            self._control.set_credentials(topology_id, None if creds is None else creds.creds, self._by)
        except TransitionError as error:
            # It shows no value; Storm declares nothing that fits better.
            raise InvalidTopologyError(str(error)) from None

    def beginFileUpload(self) -> str:
        """Returns a location to upload a file to."""
        self._control.fence()
        return self._uploads.begin(self._control.inbox)

    def uploadChunk(self, location: str, chunk: bytes) -> None:
        """Appends to a file."""
        if not isinstance(chunk, bytes):
            raise RecordError(f"chunk of a call: expected bytes, given {type(chunk).__name__}")
        self._uploads.add(self._control.inbox, _text(location, "location"), chunk)

    def finishFileUpload(self, location: str) -> None:
        """Ends an upload."""
        self._uploads.finish(self._control.inbox, _text(location, "location"))

    def submitTopology(self, name: str, uploadedJarLocation: str, jsonConf: str, topology: Any) -> None:
        """Submits a topology whose components are commands."""
        self.submitTopologyWithOpts(name, uploadedJarLocation, jsonConf, topology, None)

    def submitTopologyWithOpts(
        self, name: str, uploadedJarLocation: str, jsonConf: str, topology: Any, options: Any
    ) -> None:
        """Submits a topology whose components are commands, active or inactive."""
        location = _text(uploadedJarLocation, "uploadedJarLocation")
        conf = parsed(_text(jsonConf, "jsonConf"), "jsonConf")
        if options is not None and options.creds is not None and options.creds.creds:
            raise InvalidTopologyError(
                "credentials can't be part of a submission; push them to the topology with uploadNewCredentials"
            )
        active = options is None or options.initial_status != interface().TopologyInitialStatus.INACTIVE
        submissions.submit(
            self._control, self._uploads, _text(name, "name"), location, conf, topology, active, self._owner
        )

    def _named(self, name: str) -> StormBase:
        name = _text(name, "name")
        for base in self._control.snapshot().storms.values():
            if base.name == name:
                return base
        raise NotAliveError(f"there is no topology with the name {name[:220]!r}")

    def _by_id_or_name(self, name: str) -> StormBase:
        return self._control.snapshot().storms.get(_text(name, "name")) or self._named(name)

    def _info(self, base: StormBase, most_errors: int | None = None) -> Any:
        picture, errors = self._picture(), self._control.errors(base.topology_id)
        if errors is None:
            errors = topology_page.beat_errors(picture, base.topology_id)
        return structs.topology_info(picture, base, errors, most_errors)

    def _picture(self) -> Picture:
        return Picture.of(self._control)


class Allowed:
    """A handler whose methods are refused to those who may not use them.

    Args:
        handler: the methods.
        who: asks.
    """

    def __init__(self, handler: Handler, who: Who) -> None:
        self._handler = handler
        self._who = who

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._handler, name)

        def checked(*arguments: Any) -> Any:
            self._handler.check(name, arguments, self._who)
            return method(*arguments)

        return checked


def frame_service(control: Control, conf: Mapping[str, Any], users: Mapping[str, str] | None = None) -> FrameService:
    """Returns what answers Thrift's frames.

    Args:
        control: the Nimbus.
        conf: its configuration.
        users: of `login_users`; None for no login.

    Raises:
        SetupError: thriftpy2 isn't installed.
    """
    interface()
    settings = ThriftSettings.of(conf)
    handler = Handler(control)
    return FrameService(
        lambda frame, user: answer(handler.asked_by(user), frame),
        min(settings.most_bytes, MOST_BYTES),
        min(settings.threads, 64),
        None if users is None else lambda: DigestLogin(users),
    )


def answer(handler: Handler | Allowed, frame: bytes) -> bytes:
    """Returns the answer to a call; both are messages of the binary protocol.

    Raises:
        FrameError: it is not a call.
    """
    from thriftpy2.protocol.binary import TBinaryProtocol
    from thriftpy2.thrift import TApplicationException, TProcessor
    from thriftpy2.transport import TMemoryBuffer

    check_call(frame)
    processor = TProcessor(interface().Nimbus, handler)
    out = TMemoryBuffer()
    writing = TBinaryProtocol(out)
    try:
        name, number, result, call = processor.process_in(TBinaryProtocol(TMemoryBuffer(frame), strict_read=False))
    except Exception as error:
        # The structure is right, so it is of other types than the interface's.
        raise FrameError(f"a call that can't be read: {type(error).__name__}") from error
    if call is None:
        message = f"{name} is not answered by Thrift here; {_ELSEWHERE}"
        refused = TApplicationException(TApplicationException.UNKNOWN_METHOD, message)
        processor.send_exception(writing, name, refused, number)
        return bytes(out.getvalue())
    try:
        result.success = call()
    except Exception as error:
        declared = _declared(error)
        if declared is None or not processor.handle_exception(declared, result):
            refused = TApplicationException(TApplicationException.INTERNAL_ERROR, _sentence(error))
            processor.send_exception(writing, name, refused, number)
            return bytes(out.getvalue())
    processor.send_result(writing, name, result, number)
    return bytes(out.getvalue())


def _declared(error: Exception) -> Any:
    """Returns the exception of the interface that an error comes to; None if there is none."""
    if isinstance(error, ForbiddenError):
        return interface().AuthorizationException(msg=scrubbed(str(error)))
    if isinstance(error, NotAliveError):
        return interface().NotAliveException(msg=scrubbed(str(error)))
    if isinstance(error, AlreadyAliveError):
        return interface().AlreadyAliveException(msg=scrubbed(str(error)))
    if isinstance(error, InvalidTopologyError | ConfigError):
        return interface().InvalidTopologyException(msg=scrubbed(str(error)))
    if isinstance(error, (interface().AuthorizationException, interface().KeyNotFoundException)):
        return error
    return None


def _sentence(error: Exception) -> str:
    if isinstance(error, StormError):
        return scrubbed(str(error))
    logger.error("A Thrift call failed", exc_info=error)
    return f"{type(error).__name__}; see the log of this Nimbus"


def _most_errors(options: Any) -> int | None:
    """Returns how many errors of a component a client asks for; None for all."""
    choice = None if options is None else options.num_err_choice
    choices = interface().NumErrorsChoice
    known: dict[int | None, int | None] = {None: None, choices.ALL: None, choices.NONE: 0, choices.ONE: 1}
    if choice not in known:
        raise RecordError(f"num_err_choice of a call: expected 0 (ALL), 1 (NONE) or 2 (ONE), given {choice}")
    return known[choice]


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise RecordError(f"{what} of a call: expected text, given {type(value).__name__}")
    return value
