"""Real servers for tests, in processes of their own: HDFS, S3, Spark's standalone mode; and a client of Pacemaker."""
