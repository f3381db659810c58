"""Components in any language: `ShellBolt` and `ShellSpout` run a command that speaks Storm's multilang protocol.

The protocol is that of Storm's multilang components, over the child's standard input and output.
What the child keeps in memory is its own affair: it is not part of the topology's state.
"""

from __future__ import annotations

from storm_on_spark.multilang.errors import ShellError
from storm_on_spark.multilang.shell_bolt import ShellBolt
from storm_on_spark.multilang.shell_spout import ShellSpout

__all__ = ["ShellBolt", "ShellError", "ShellSpout"]
