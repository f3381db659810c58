# A spout of Storm's storm.rb: three words, and another for each that fails.
require_relative "storm"

class Words < Storm::Spout
  def open(conf, context)
    @left = [["rb1", "ant"], ["rb2", "fail"], ["rb3", conf["test.word"]]]
  end

  def nextTuple
    return if @left.empty?
    id, word = @left.shift
    emit([word], :id => id)
  end

  def ack(id)
    logInfo("storm.rb was told of the ack of " + id)
  end

  def fail(id)
    @left.push([id, "again"])
  end
end

Words.new.run
