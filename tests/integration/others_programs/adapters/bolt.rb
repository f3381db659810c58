# A bolt of Storm's storm.rb that does what the word of its input says.
require_relative "storm"

class Says < Storm::Bolt
  def prepare(conf, context)
    @suffix = conf["test.suffix"]
  end

  def process(tup)
    word = tup.values[0]
    if word == "fail"
      fail(tup)
      return
    end
    case word
    when "log" then logWarn("a warning from storm.rb")
    when "error" then reportError("an error from storm.rb")
    when "metric" then send_msg_to_parent({"command" => "metrics", "name" => "hits", "params" => 3})
    when "raise" then raise "raised in storm.rb"
    end
    tasks = emit([word + @suffix], :anchor => tup)
    emit([tasks], :stream => "tasks", :anchor => tup)
    ack(tup)
  end
end

Says.new.run
