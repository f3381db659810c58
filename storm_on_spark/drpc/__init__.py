"""DRPC: questions to a topology that are answered, as Storm's `org.apache.storm.drpc`; the server is `cluster.drpc`."""

from __future__ import annotations

from storm_on_spark.drpc.bolts import JoinResult, PrepareRequest, ReturnResults
from storm_on_spark.drpc.client import DRPCClient
from storm_on_spark.drpc.errors import DRPCExceptionType, DRPCExecutionException
from storm_on_spark.drpc.linear import LinearDRPCInputDeclarer, LinearDRPCTopologyBuilder
from storm_on_spark.drpc.spout import DRPCSpout

__all__ = [
    "DRPCClient",
    "DRPCExceptionType",
    "DRPCExecutionException",
    "DRPCSpout",
    "JoinResult",
    "LinearDRPCInputDeclarer",
    "LinearDRPCTopologyBuilder",
    "PrepareRequest",
    "ReturnResults",
]
