"""The REST interface of an admin as a contract: the resources, their requests and their answers."""
