"""The REST interface of a Nimbus: Storm UI's paths and field names, and what a submission needs."""
