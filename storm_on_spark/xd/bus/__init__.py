"""The message bus between modules: records in a place that all containers share."""
