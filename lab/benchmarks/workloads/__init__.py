"""The workloads: topologies, their sentences, keys and rates, and topics of Kafka."""
