"""The jars of Spark's Kafka source, and those of a broker: its own from Maven, and those that pyspark ships."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.spark.session.jars import Jar, JarSet, fetch

_VERSION: Final = "4.1.1"
_KAFKA: Final = {
    "kafka-clients": "00247122a572c3d3ae4eb60a50192a5811bc0181f51923d13018600f892e821d",
    "kafka-coordinator-common": "2072fc1ce7e0505149bba22a463a5909a899c6235c4fa696f15c21194a7baf60",
    "kafka-group-coordinator": "3eb5a673b69d5992cfa86c5436f39adbf4ce284046a4c999ec6af0a8e31c5589",
    "kafka-group-coordinator-api": "3d1801d2329dcf7d273796a034d61e6c7e0f851f384d0afbdd3a2e6cbd17a968",
    "kafka-metadata": "a689665751415b6456de1ecb013042cb7ba99ac68fd8c3e8bf28e098feb43218",
    "kafka-raft": "4810c93d93d1935dd54de61c5ba130f501c7fe11bc49ccd3ee05ec857818a72a",
    "kafka-server": "9f6aff422855491aad54326eca8d604163d6d3a6507cc48ffe3ce6de73caf79a",
    "kafka-server-common": "207edecd8322cf6c13d76d84addea7fd0ec441dc8d698cf69df43210ccdc0a94",
    "kafka-share-coordinator": "e6bec53428c77bf6579321836d482542a93575f7c08e860a26c9f2c7f6059dac",
    "kafka-storage": "1f85b82853eaec0143efbef7e3a4d4be8929ff83a386326431e0c2d0a557e58c",
    "kafka-storage-api": "8c0a712472185d706c6bf5ae24bf5d84a8e396fd4745c708e6146a415f7fa7f7",
    "kafka-tools-api": "542b08fe20cf872a2d866acdff61ea338b469219dc2ebfae727a1d9ea5737e1a",
    "kafka-transaction-coordinator": "a261b5730ac9e3205df7af5d45180d851e9d5f729ce1275c67511a6f51f73755",
    "kafka_2.13": "e89428126cc7630a802123ba27aac4442816840b66d60670226feaff65f24fd1",
}
_OTHERS: Final = (
    Jar(
        "commons-validator",
        "commons-validator",
        "1.9.0",
        "c3c14748e2d78db58df88808740711bd643b32c45ffa7b8a739f00fb467cd7d7",
    ),
    Jar(
        "org.hdrhistogram", "HdrHistogram", "2.2.2", "22d1d4316c4ec13a68b559e98c8256d69071593731da96136640f864fa14fad8"
    ),
    Jar("com.dynatrace.hash4j", "hash4j", "0.22.0", "23028a3fd006e530bf495f551083208187cafd8f80624d048eba56442f16a50e"),
    Jar(
        "com.github.ben-manes.caffeine",
        "caffeine",
        "3.2.0",
        "ec411dfdf0c03f25218648ce89861630b71680e5858a9a7278ebac8e55cab3d7",
    ),
    Jar(
        "net.sf.jopt-simple", "jopt-simple", "5.0.4", "df26cc58f235f477db07f753ba5a3ab243ebe5789d9f89ecf68dd62ea9a66c28"
    ),
    Jar("org.bitbucket.b_c", "jose4j", "0.9.6", "7314af50cde9c99e8eaf43eee617a23edcc6bb43036221064355094999d837ef"),
    Jar(
        "com.yammer.metrics",
        "metrics-core",
        "2.2.0",
        "6b7a14a6f34c10f8683f7b5e2f39df0f07b58c7dff0e468ebbc713905c46979c",
    ),
    Jar(
        "org.pcollections", "pcollections", "4.0.2", "2bbeef5797a241300c4f7513cd546239629ed7deda4fc0c31df90bb95f5f13ef"
    ),
    Jar("com.google.re2j", "re2j", "1.8", "7b52c72156dd7f98b3237a5b35c1d34fba381b21048c89208913ad80a45dfbd7"),
    Jar(
        "com.typesafe.scala-logging",
        "scala-logging_2.13",
        "3.9.5",
        "87a3017d3f43e6ace7566fe4c3d615134c6914ff871c8d64bb32ca1d996d0545",
    ),
    Jar(
        "com.fasterxml.jackson.dataformat",
        "jackson-dataformat-csv",
        "2.19.0",
        "bec1150426b0616bb488149b952b45a0dcb16d9416b017c38f6455ad9389bc68",
    ),
    Jar(
        "com.fasterxml.jackson.datatype",
        "jackson-datatype-jdk8",
        "2.19.0",
        "04f1a3f9da8155995dd00098d6847cdb9b7af67f4a3028c94031eff017c8e3e5",
    ),
)
JARS: Final = JarSet(
    name="Kafka broker",
    jars=(*(Jar("org.apache.kafka", name, _VERSION, sha256) for name, sha256 in _KAFKA.items()), *_OTHERS),
    without="no broker can be started on this machine",
    patience_secs=300.0,
)

SOURCE: Final = JarSet(
    name="Kafka source of Spark",
    jars=(
        Jar(
            "org.apache.spark",
            "spark-sql-kafka-0-10_2.13",
            "4.2.0",
            "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
        ),
        Jar(
            "org.apache.spark",
            "spark-token-provider-kafka-0-10_2.13",
            "4.2.0",
            "641c7947afc8aa1189e433b7c2d305293993c8691bc1c2062d6d4f513b12518c",
        ),
        Jar(
            "org.apache.kafka",
            "kafka-clients",
            "3.9.2",
            "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
        ),
        Jar(
            "org.apache.commons",
            "commons-pool2",
            "2.13.1",
            "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
        ),
    ),
    without="KafkaSpout can't read; PlainKafkaSpout can",
    patience_secs=120.0,
)
SOURCE_CLASS: Final = "org.apache.spark.sql.kafka010.KafkaSourceProvider"

_FROM_PYSPARK: Final = (
    "scala-library-*.jar",
    "slf4j-api-*.jar",
    "log4j-api-*.jar",
    "log4j-core-*.jar",
    "log4j-slf4j2-impl-*.jar",
    "jackson-annotations-*.jar",
    "jackson-core-2*.jar",
    "jackson-databind-*.jar",
    "jackson-dataformat-yaml-*.jar",
    "snakeyaml-2*.jar",
    "zstd-jni-*.jar",
    "lz4-java-*.jar",
    "snappy-java-*.jar",
)


def class_path() -> str:
    """Returns the class path of a broker; what is missing is fetched.

    Raises:
        SetupError: there is no pyspark, or the jars can't be fetched.
    """
    own = fetch(JARS)
    if own is None:
        raise SetupError("Kafka's jars can't be fetched from Maven here: is there a network, or a mirror for mvn?")
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SetupError("pyspark isn't installed, whose jars a Kafka broker needs too")
    folder = Path(spec.origin).parent / "jars"
    shipped = [jar for pattern in _FROM_PYSPARK for jar in sorted(folder.glob(pattern))]
    return os.pathsep.join(map(str, [*own, *shipped]))
