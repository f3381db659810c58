"""Real servers for tests, in separate processes: HDFS, S3, RabbitMQ; and a client of Pacemaker."""
