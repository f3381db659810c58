"""The DRPC server: takes requests over HTTP and Thrift, hands them to topologies, and answers with their results."""
