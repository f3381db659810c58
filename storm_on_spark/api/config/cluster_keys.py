"""Keys of a cluster: ZooKeeper, Nimbus, supervisors, Pacemaker and the web interface.

They are checked wherever they stand, so that one file can configure a cluster and the topologies in it.
"""

from __future__ import annotations

from typing import Final

from storm_on_spark.api.config.names import ConfigNames as N
from storm_on_spark.api.config.types import (
    BOOL,
    LIST,
    MAPPING,
    PORT,
    PORTS,
    TEXT,
    TEXT_OR_TEXTS,
    TEXTS,
    ConfigKey,
    accepted,
    choice,
    honoured,
    integer,
    mapping,
    number,
    planned,
)

_ZOOKEEPER = "the cluster does not read it yet"
_NIMBUS = "Nimbus does not read it yet"
_SUPERVISOR = "supervisors do not read it yet"
_UI = "there is no web interface yet"
_THRIFT = "the Thrift service has no such setting"
_JVM = "daemons are Python processes"
_BLOBS = "code distributors replace the blob store"
_RPC = "there is no such service"

CLUSTER_KEYS: Final[tuple[ConfigKey, ...]] = (
    # ZooKeeper.
    honoured(N.STORM_ZOOKEEPER_SERVERS, TEXTS, ["localhost"], "Hosts of the ZooKeeper ensemble."),
    honoured(N.STORM_ZOOKEEPER_PORT, PORT, 2181, "Port of the ZooKeeper servers."),
    honoured(N.STORM_ZOOKEEPER_ROOT, TEXT, "/storm", "Node below which everything is kept."),
    honoured(
        N.STORM_ZOOKEEPER_SESSION_TIMEOUT,
        integer(1),
        20000,
        "Milliseconds until a session expires.",
    ),
    honoured(
        N.STORM_ZOOKEEPER_CONNECTION_TIMEOUT,
        integer(1),
        15000,
        "Milliseconds that connecting may take.",
    ),
    honoured(N.STORM_ZOOKEEPER_RETRY_TIMES, integer(0), 5, "Attempts after a failed operation."),
    honoured(
        N.STORM_ZOOKEEPER_RETRY_INTERVAL,
        integer(0),
        1000,
        "Milliseconds before the first of them.",
    ),
    honoured(
        N.STORM_ZOOKEEPER_RETRY_INTERVAL_CEILING,
        integer(0),
        30000,
        "Most milliseconds between two of them.",
    ),
    honoured(
        N.STORM_ZOOKEEPER_AUTH_SCHEME,
        choice("digest", "sasl"),
        None,
        "How to log in to ZooKeeper: `digest`, or `sasl` with DIGEST-MD5. Nodes are for that user only then.",
    ),
    honoured(N.STORM_ZOOKEEPER_AUTH_PAYLOAD, TEXT, None, "What it sends: `user:password`."),
    planned(N.STORM_ZOOKEEPER_AUTH_USER, TEXT, None, "User name for ZooKeeper.", _ZOOKEEPER),
    planned(N.STORM_ZOOKEEPER_AUTH_PASSWORD, TEXT, None, "Password for ZooKeeper.", _ZOOKEEPER),
    planned(
        N.STORM_ZOOKEEPER_TOPOLOGY_AUTH_SCHEME,
        TEXT,
        None,
        "Authentication scheme of a topology's processes.",
        _ZOOKEEPER,
    ),
    planned(N.STORM_ZOOKEEPER_TOPOLOGY_AUTH_PAYLOAD, TEXT, None, "What that scheme sends.", _ZOOKEEPER),
    planned(N.STORM_ZOOKEEPER_SUPERACL, TEXT, None, "ACL of the daemons, as `scheme:acl`.", _ZOOKEEPER),
    planned(N.STORM_ZOOKEEPER_SSL_ENABLE, BOOL, False, "Whether connections use TLS.", _ZOOKEEPER),
    planned(
        N.STORM_ZOOKEEPER_SSL_HOSTNAME_VERIFICATION,
        BOOL,
        False,
        "Whether a server's certificate must name its host.",
        _ZOOKEEPER,
    ),
    accepted(N.STORM_ZOOKEEPER_DRPC_ACL, TEXT, None, "ACL of the DRPC servers, as `scheme:acl`.", _RPC),
    honoured(
        N.STORM_CLUSTER_STATE_STORE,
        choice(
            "org.apache.storm.cluster.ZKStateStorageFactory",
            "org.apache.storm.cluster.PaceMakerStateStorageFactory",
            "storm_on_spark.cluster.heartbeats.reader.ZooKeeperReader",
            "storm_on_spark.cluster.heartbeats.reader.PacemakerReader",
        ),
        "org.apache.storm.cluster.ZKStateStorageFactory",
        "Name of the class that keeps drivers' heartbeats: ZooKeeper's or Pacemaker's, Storm's or ours.",
    ),
    planned(
        N.STORM_CLUSTER_MODE,
        choice("distributed", "local"),
        "distributed",
        "Whether this is a cluster or one process.",
        _ZOOKEEPER,
    ),
    honoured(N.STORM_LOCAL_DIR, TEXT, "storm-local", "Directory of the daemons' files."),
    honoured(
        N.STORM_CHECKPOINT_DIR,
        TEXT,
        None,
        "Of a Nimbus: folder in which each topology that names no `topology.checkpoint.dir` gets one of its own. With "
        "several machines it must be on storage that all of them see. Unset: below `storm.local.dir`, on the disk of "
        "one machine. Not a key of Storm's.",
    ),
    honoured(N.STORM_LOCAL_HOSTNAME, TEXT, None, "Name by which this host is known to the others."),
    # Nimbus.
    honoured(N.NIMBUS_SEEDS, TEXTS, ["localhost"], "Hosts where a client looks for Nimbus."),
    honoured(N.NIMBUS_THRIFT_PORT, PORT, 6627, "Port on which Nimbus listens, for REST and Thrift."),
    honoured(N.NIMBUS_THRIFT_THREADS, integer(1), 64, "Most Thrift calls at the same time; 64 at most."),
    honoured(
        N.NIMBUS_THRIFT_TRANSPORT_PLUGIN,
        TEXT,
        None,
        "Thrift transport of Nimbus: Storm's class SimpleTransportPlugin or DigestSaslTransportPlugin, with package.",
    ),
    honoured(
        N.STORM_THRIFT_TRANSPORT_PLUGIN,
        TEXT,
        "org.apache.storm.security.auth.SimpleTransportPlugin",
        "Thrift transport of Nimbus where nimbus.thrift.transport is not set.",
    ),
    honoured(N.NIMBUS_THRIFT_MAX_BUFFER_SIZE, integer(1), 1048576, "Most bytes of a Thrift call; 16 MiB at most."),
    honoured(
        N.NIMBUS_BIND_ADDRESS,
        TEXT,
        "127.0.0.1",
        "Address on which Nimbus listens. One that other hosts can reach needs `nimbus.auth.token.file`. Not a key of "
        "Storm's.",
    ),
    honoured(
        N.NIMBUS_AUTH_TOKEN_FILE,
        TEXT,
        None,
        "File with the token that all daemons and clients of the cluster share, the cluster's secret; only its owner "
        "may read it. One token a line: the first one signs, all are accepted. Not a key of Storm's.",
    ),
    honoured(
        N.STORM_TLS_CERTIFICATE_FILE,
        TEXT,
        None,
        "File with this host's certificate and those between it and the CA, as PEM: Nimbuses and supervisors serve "
        "HTTPS, and nothing else. Not a key of Storm's.",
    ),
    honoured(
        N.STORM_TLS_KEY_FILE,
        TEXT,
        None,
        "File with the certificate's private key, as PEM and without a password; only its owner may read it. Not a "
        "key of Storm's.",
    ),
    honoured(
        N.STORM_TLS_CA_FILE,
        TEXT,
        None,
        "File with the certificates of the CAs, as PEM, by which daemons and clients know a Nimbus or a supervisor. "
        "With it they speak HTTPS. Not a key of Storm's.",
    ),
    honoured(
        N.NIMBUS_AUTH_DIGEST_FILE,
        TEXT,
        None,
        "File with users who may log in by HTTP Digest, lines `user:storm-on-spark:<SHA-256 of "
        "user:storm-on-spark:password>`. Not a key of Storm's.",
    ),
    honoured(
        N.NIMBUS_CODE_SYNC_FREQ_SECS,
        integer(1),
        120,
        "Seconds between checks for missing code; a watch makes it come at once.",
    ),
    honoured(N.NIMBUS_MONITOR_FREQ_SECS, integer(1), 10, "Seconds between checks of all topologies."),
    honoured(
        N.NIMBUS_TASK_TIMEOUT_SECS,
        integer(1),
        30,
        "Seconds without a heartbeat after which a topology's driver counts as dead, and is started on another "
        "supervisor.",
    ),
    honoured(
        N.NIMBUS_TASK_LAUNCH_SECS,
        integer(1),
        120,
        "The same, until the first heartbeat after a start: it comes when the topology runs.",
    ),
    honoured(
        N.NIMBUS_SUPERVISOR_TIMEOUT_SECS,
        integer(1),
        60,
        "Seconds without a heartbeat after which a supervisor counts as dead.",
    ),
    honoured(
        N.STORM_CODEDISTRIBUTOR_CLASS,
        TEXT,
        "org.apache.storm.codedistributor.LocalFileSystemCodeDistributor",
        "What brings a topology's code to all hosts: `local`, `hdfs`, `delta`, the name of one of Storm's classes, or "
        "`package.module:Class` of your own.",
    ),
    honoured(
        N.STORM_CODEDISTRIBUTOR_LOCATION,
        TEXT,
        None,
        "Where `hdfs` and `delta` keep the code: a folder as `hdfs://host:port/path`, a table as a path or URI. It is "
        "for one cluster alone: code there that its ZooKeeper doesn't know of is removed after "
        "`nimbus.inbox.jar.expiration.secs`. Not a key of Storm's.",
    ),
    honoured(N.STORM_NIMBUS_RETRY_TIMES, integer(0), 5, "Attempts of a client after a failed request."),
    honoured(N.STORM_NIMBUS_RETRY_INTERVAL, integer(0), 2000, "Milliseconds before the first of them."),
    honoured(
        N.STORM_NIMBUS_RETRY_INTERVAL_CEILING,
        integer(0),
        60000,
        "Most milliseconds between two of them.",
    ),
    honoured(N.NIMBUS_CLEANUP_INBOX_FREQ_SECS, integer(1), 600, "Seconds between cleanings of the inbox."),
    honoured(
        N.NIMBUS_INBOX_JAR_EXPIRATION_SECS,
        integer(1),
        3600,
        "Seconds that uploaded code stays in the inbox.",
    ),
    honoured(
        N.NIMBUS_FILE_COPY_EXPIRATION_SECS,
        integer(1),
        600,
        "Seconds after which an idle upload or download ends.",
    ),
    planned(
        N.NIMBUS_TOPOLOGY_VALIDATOR,
        TEXT,
        "org.apache.storm.nimbus.DefaultTopologyValidator",
        "Name of the class that says whether a topology may be submitted.",
        _NIMBUS,
    ),
    planned(N.NIMBUS_SLOTS_PER_TOPOLOGY, integer(0), None, "Most workers of any one topology.", _NIMBUS),
    planned(N.NIMBUS_EXECUTORS_PER_TOPOLOGY, integer(0), None, "Most executors of any one topology.", _NIMBUS),
    planned(N.NIMBUS_AUTHORIZER, TEXT, None, "Name of the class that allows or refuses requests.", _NIMBUS),
    planned(N.NIMBUS_ADMINS, TEXTS, None, "Users who may do everything.", _NIMBUS),
    planned(N.NIMBUS_ADMINS_GROUPS, TEXTS, None, "Groups whose users may do everything.", _NIMBUS),
    planned(N.NIMBUS_USERS, TEXTS, None, "The only users who may submit topologies.", _NIMBUS),
    planned(N.NIMBUS_GROUPS, TEXTS, None, "The only groups whose users may.", _NIMBUS),
    planned(N.NIMBUS_SUPERVISOR_USERS, TEXTS, None, "Users that supervisors run as.", _NIMBUS),
    planned(N.NIMBUS_DAEMON_USER, TEXT, None, "User that Nimbus runs as.", _NIMBUS),
    planned(N.NIMBUS_DAEMON_USERS, TEXTS, None, "Users that Nimbus may run as.", _NIMBUS),
    accepted(N.NIMBUS_QUEUE_SIZE, integer(1), 100000, "Requests that may wait for a thread.", _THRIFT),
    accepted(N.STORM_THRIFT_SOCKET_TIMEOUT_MS, integer(0), 600000, "Timeout of Thrift clients.", _THRIFT),
    accepted(N.NIMBUS_CHILDOPTS, TEXT_OR_TEXTS, "-Xmx1024m", "JVM options of Nimbus.", _JVM),
    accepted(
        N.NIMBUS_BLOBSTORE,
        TEXT,
        "org.apache.storm.blobstore.LocalFsBlobStore",
        "Name of Nimbus' blob store.",
        _BLOBS,
    ),
    accepted(N.NIMBUS_BLOBSTORE_EXPIRATION_SECS, integer(1), 600, "Seconds until an idle session ends.", _BLOBS),
    accepted(
        N.NIMBUS_TOPOLOGY_BLOBSTORE_DELETION_DELAY_MS,
        integer(0),
        300000,
        "Milliseconds before blobs of a dead topology go.",
        _BLOBS,
    ),
    accepted(N.STORM_BLOBSTORE_REPLICATION_FACTOR, integer(1), 3, "Copies of a blob in HDFS.", _BLOBS),
    accepted(N.NIMBUS_CREDENTIAL_RENEW_FREQ_SECS, integer(1), 600, "Seconds between renewals.", _RPC),
    accepted(N.NIMBUS_CREDENTIAL_RENEWERS, TEXTS, None, "Classes that renew credentials.", _RPC),
    accepted(N.NIMBUS_AUTO_CRED_PLUGINS, TEXTS, None, "Classes that fetch credentials.", _RPC),
    accepted(
        N.STORM_META_SERIALIZATION_DELEGATE,
        TEXT,
        "org.apache.storm.serialization.GzipThriftSerializationDelegate",
        "Name of the class that serializes what is kept in ZooKeeper.",
        "what is kept in ZooKeeper has a format of its own",
    ),
    accepted(N.STORM_SCHEDULER, TEXT, None, "Name of the scheduler.", "Spark schedules the tasks"),
    accepted(N.STORM_METRICS_REPORTERS, LIST, None, "Reporters of metrics (v2), one mapping each.", _RPC),
    # Supervisors.
    honoured(
        N.SUPERVISOR_LOGS_BIND_ADDRESS,
        TEXT,
        "127.0.0.1",
        "Address on which a supervisor shows the logs of its drivers. One that other hosts can reach needs "
        "`nimbus.auth.token.file`. Not a key of Storm's.",
    ),
    honoured(
        N.SUPERVISOR_LOGS_PORT,
        PORT,
        8000,
        "Port on which it does; any free one where that is taken. Not a key of Storm's.",
    ),
    honoured(
        N.SUPERVISOR_LOGS_CLEANUP_AGE_MINS,
        integer(1),
        10080,
        "Minutes for which the logs of a topology that is no more stay on its host, counted from their last line; "
        "`storm-spark logs` shows them until then. A week by default, as Storm's `logviewer.cleanup.age.mins`. Not a "
        "key of Storm's.",
    ),
    honoured(
        N.SUPERVISOR_SLOTS_PORTS,
        PORTS,
        [6700, 6701, 6702, 6703],
        "One port per topology that a supervisor may host at the same time.",
    ),
    honoured(
        N.SUPERVISOR_SPARE_DRIVERS,
        integer(0),
        0,
        "Drivers that a supervisor keeps ready, with Spark started and warm: a topology without settings of Spark of "
        "its own is taken over in seconds. Each takes up to 1 GB of memory. Not a key of Storm's.",
    ),
    honoured(
        N.SUPERVISOR_WORKER_START_TIMEOUT_SECS,
        integer(1),
        120,
        "Seconds that a driver may take to start.",
    ),
    honoured(
        N.SUPERVISOR_WORKER_TIMEOUT_SECS,
        integer(1),
        30,
        "Seconds without a heartbeat after which a driver is started again.",
    ),
    honoured(
        N.SUPERVISOR_WORKER_SHUTDOWN_SLEEP_SECS,
        integer(1),
        3,
        "Seconds that a driver may take to end by itself; then it is killed.",
    ),
    accepted(
        N.SUPERVISOR_MONITOR_FREQUENCY_SECS,
        integer(1),
        3,
        "Seconds between checks of the drivers.",
        "drivers are looked at several times a second",
    ),
    honoured(
        N.SUPERVISOR_HEARTBEAT_FREQUENCY_SECS,
        integer(1),
        5,
        "Seconds between a supervisor's heartbeats.",
    ),
    planned(
        N.SUPERVISOR_WORKER_HEARTBEATS_MAX_TIMEOUT_SECS,
        integer(1),
        600,
        "Seconds that a new leader waits for the first heartbeats.",
        _SUPERVISOR,
    ),
    honoured(N.SUPERVISOR_ENABLE, BOOL, True, "Whether a supervisor hosts anything."),
    planned(N.SUPERVISOR_MEMORY_CAPACITY_MB, number(0), 4096.0, "Megabytes that it may give out.", _SUPERVISOR),
    planned(N.SUPERVISOR_CPU_CAPACITY, number(0), 400.0, "Cores that it may give out, 100 each.", _SUPERVISOR),
    planned(N.SUPERVISOR_SCHEDULER_META, mapping(TEXT), None, "Labels of the supervisor.", _SUPERVISOR),
    accepted(N.SUPERVISOR_CHILDOPTS, TEXT_OR_TEXTS, "-Xmx256m", "JVM options of supervisors.", _JVM),
    planned(
        N.SUPERVISOR_RUN_WORKER_AS_USER,
        BOOL,
        False,
        "Whether drivers run as the user who submitted the topology.",
        _SUPERVISOR,
    ),
    accepted(N.SUPERVISOR_RESOURCES_MAP, MAPPING, None, "Resources of a supervisor, by name.", "Spark schedules"),
    accepted(N.SUPERVISOR_THRIFT_PORT, PORT, 6628, "Port of the Thrift service.", _THRIFT),
    accepted(N.SUPERVISOR_THRIFT_THREADS, integer(1), 16, "Threads of the Thrift service.", _THRIFT),
    accepted(N.SUPERVISOR_THRIFT_MAX_BUFFER_SIZE, integer(1), 1048576, "Most bytes of a Thrift message.", _THRIFT),
    accepted(N.SUPERVISOR_THRIFT_SOCKET_TIMEOUT_MS, integer(0), 5000, "Timeout of Thrift clients.", _THRIFT),
    accepted(N.SUPERVISOR_QUEUE_SIZE, integer(1), 128, "Requests that may wait for a thread.", _THRIFT),
    # Pacemaker.
    honoured(
        N.PACEMAKER_SERVERS,
        TEXTS,
        [],
        "Hosts of the Pacemaker servers, as `host` or `host:port`; any one left is enough.",
    ),
    honoured(N.PACEMAKER_PORT, PORT, 6699, "Port of the Pacemaker servers."),
    honoured(N.PACEMAKER_THRIFT_MESSAGE_SIZE_MAX, integer(1), 10485760, "Most bytes of a message."),
    honoured(
        N.PACEMAKER_CLIENT_MAX_THREADS,
        integer(1),
        2,
        "Of a Nimbus: how many Pacemakers it reads at the same time.",
    ),
    accepted(
        N.PACEMAKER_BASE_THREADS,
        integer(1),
        10,
        "Threads of an idle server.",
        "Storm 2 doesn't read it either",
    ),
    accepted(
        N.PACEMAKER_THREAD_TIMEOUT,
        integer(1),
        10,
        "Seconds until an idle thread ends.",
        "Storm 2 doesn't read it either",
    ),
    # Web interface.
    planned(N.UI_HOST, TEXT, "0.0.0.0", "Address that the web interface listens on.", _UI),  # noqa: S104
    planned(N.UI_PORT, PORT, 8080, "Port that the web interface listens on.", _UI),
    planned(N.UI_ACTIONS_ENABLED, BOOL, True, "Whether topologies can be killed and the like from it.", _UI),
    planned(N.UI_PAGINATION, integer(-1), 20, "Rows per page; -1 shows all.", _UI),
    planned(N.UI_USERS, TEXTS, None, "Users who may see it.", _UI),
    planned(N.UI_GROUPS, TEXTS, None, "Groups whose users may see it.", _UI),
    planned(N.UI_CENTRAL_LOGGING_URL, TEXT, None, "Link to where all logs are.", _UI),
    planned(N.UI_PROJECT_BUGTRACKER_URL, TEXT, None, "Link to where problems are reported.", _UI),
    planned(N.UI_DISABLE_SPOUT_LAG_MONITORING, BOOL, True, "Whether it doesn't show the lag of Kafka spouts.", _UI),
    accepted(N.UI_CHILDOPTS, TEXT_OR_TEXTS, "-Xmx768m", "JVM options of the web interface.", _JVM),
    accepted(N.UI_HEADER_BUFFER_BYTES, integer(1), 4096, "Bytes of a request's header.", "the web server decides"),
    accepted(
        N.UI_DISABLE_HTTP_BINDING,
        BOOL,
        True,
        "Whether it listens on HTTPS only, where HTTPS is set up.",
        "put a reverse proxy in front of it for HTTPS",
    ),
)
