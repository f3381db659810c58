"""The Thrift service of a Nimbus: Storm's own commands and other Thrift clients, over the same core as REST."""
