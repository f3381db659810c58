"""Real servers for tests, in processes of their own: HDFS, S3, RabbitMQ; and a client of Pacemaker."""
