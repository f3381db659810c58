"""What is measured: topologies, the sentences and keys they are fed, at which rate, and topics of Kafka."""
