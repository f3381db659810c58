"""The REST interface of an admin as a contract: the resources, what they take and what they give."""
