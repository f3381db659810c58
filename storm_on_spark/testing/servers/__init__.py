"""Real servers for tests, in separate processes: HDFS, S3, RabbitMQ, Redis, PostgreSQL; and a client of Pacemaker."""
