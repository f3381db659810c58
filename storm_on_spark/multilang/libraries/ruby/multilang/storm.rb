# Storm's multilang protocol for components in Ruby, with the names that components take from `storm`.
# Messages are JSON, each followed by a line `end`.

require "json"

module Storm
  # What components say and hear.
  module Protocol
    class << self
      attr_accessor :mode, :pending_taskids, :pending_commands
    end

    self.pending_taskids = []
    self.pending_commands = []

    # At the end of the input the process ends: nobody is there any more.
    def read_message
      lines = []
      while (line = STDIN.gets)
        line = line.chomp
        return JSON.parse(lines.join("\n")) if line == "end"
        lines << line
      end
      exit 0
    end

    # The tasks that got the last tuple that was emitted; commands that come before wait.
    def read_task_ids
      return Protocol.pending_taskids.shift unless Protocol.pending_taskids.empty?
      until (message = read_message).is_a?(Array)
        Protocol.pending_commands.push(message)
      end
      message
    end

    def read_command
      return Protocol.pending_commands.shift unless Protocol.pending_commands.empty?
      while (message = read_message).is_a?(Array)
        Protocol.pending_taskids.push(message)
      end
      message
    end

    def send_msg_to_parent(message)
      STDOUT.write(JSON.generate(message) + "\nend\n")
      STDOUT.flush
    end

    def sync
      send_msg_to_parent("command" => "sync")
    end

    def send_pid(folder)
      File.write(File.join(folder, Process.pid.to_s), "")
      send_msg_to_parent("pid" => Process.pid)
    end

    # Emits a tuple; returns the tasks that get it. Options: stream, direct_task; of bolts anchor or anchors; of spouts id.
    def emit(tuple, options = {})
      Protocol.mode == "spout" ? emit_spout(tuple, options) : emit_bolt(tuple, options)
    end

    def emit_bolt(tuple, options = {})
      anchors = options[:anchors] || options[:anchor] || []
      anchors = [anchors] unless anchors.is_a?(Enumerable)
      send_emit({"command" => "emit", "anchors" => anchors.map(&:id), "tuple" => tuple}, options)
    end

    def emit_spout(tuple, options = {})
      message = {"command" => "emit", "tuple" => tuple}
      message["id"] = options[:id] unless options[:id].nil?
      send_emit(message, options)
    end

    def ack(tuple)
      send_msg_to_parent("command" => "ack", "id" => tuple.id)
    end

    def fail(tuple)
      send_msg_to_parent("command" => "fail", "id" => tuple.id)
    end

    def reportError(message)
      send_msg_to_parent("command" => "error", "msg" => message.to_s)
    end

    def log(message, level = 2)
      send_msg_to_parent("command" => "log", "msg" => message.to_s, "level" => level)
    end

    %w[Trace Debug Info Warn Error].each_with_index do |name, level|
      define_method("log#{name}") { |message| log(message, level) }
    end

    # Shakes hands; returns configuration and context.
    def handshake
      setup = read_message
      send_pid(setup["pidDir"])
      [setup["conf"], setup["context"]]
    end

    private

    def send_emit(message, options)
      message["stream"] = options[:stream] if options[:stream]
      message["task"] = options[:direct_task] if options[:direct_task]
      send_msg_to_parent(message)
      read_task_ids unless options[:direct_task]
    end

    # The process ends by an exception, and another is started in its place.
    def reporting
      yield
    rescue StandardError => error
      reportError(error.full_message(highlight: false))
      raise
    end
  end

  # The input of a bolt.
  class Tuple
    attr_accessor :id, :component, :stream, :task, :values

    def initialize(id, component, stream, task, values)
      @id, @component, @stream, @task, @values = id, component, stream, task, values
    end

    def self.from_hash(hash)
      new(*hash.values_at("id", "comp", "stream", "task", "tuple"))
    end

    def is_heartbeat
      task == -1 && stream == "__heartbeat"
    end
  end

  # A bolt: override prepare and process.
  class Bolt
    include Storm::Protocol

    def prepare(conf, context); end

    def process(tuple); end

    def run
      Protocol.mode = "bolt"
      setup = handshake
      reporting do
        prepare(*setup)
        loop do
          tuple = Tuple.from_hash(read_command)
          tuple.is_heartbeat ? sync : process(tuple)
        end
      end
    end
  end

  # A spout: override open, nextTuple, ack and fail.
  class Spout
    include Storm::Protocol

    def open(conf, context); end

    def nextTuple; end

    def ack(id); end

    def fail(id); end

    def activate; end

    def deactivate; end

    def run
      Protocol.mode = "spout"
      setup = handshake
      reporting do
        open(*setup)
        loop do
          message = read_command
          case message["command"]
          when "next" then nextTuple
          when "ack" then ack(message["id"])
          when "fail" then fail(message["id"])
          when "activate" then activate
          when "deactivate" then deactivate
          end
          sync
        end
      end
    end
  end
end
