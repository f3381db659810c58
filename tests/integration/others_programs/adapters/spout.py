"""A spout of Storm's storm.py: three words, and another for each that fails."""

from __future__ import annotations

import storm


class Words(storm.Spout):
    def initialize(self, conf, context):
        self.left = [["py1", "ant"], ["py2", "fail"], ["py3", conf["test.word"]]]

    def nextTuple(self):  # Storm's name
        if self.left:
            name, word = self.left.pop(0)
            storm.emit([word], id=name)

    def ack(self, name):
        storm.logInfo("storm.py was told of the ack of " + name)

    def fail(self, name):
        self.left.append([name, "again"])


Words().run()
