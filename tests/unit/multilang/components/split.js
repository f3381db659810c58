// A bolt in Node, without a library: splits sentences, answers some of them later.
let rest = '';
const fs = require('fs');
function send(message) { fs.writeSync(1, JSON.stringify(message) + '\nend\n'); }
let known = false;
process.stdin.on('data', (data) => {
  const parts = (rest + data).split('\nend\n');
  rest = parts.pop();
  for (const part of parts) handle(JSON.parse(part));
});
process.stdin.on('end', () => process.exit(0));
function handle(message) {
  if (!known) {
    known = true;
    fs.writeFileSync(message.pidDir + '/' + process.pid, '');
    send({ pid: process.pid });
    send({ command: 'log', msg: 'task ' + message.context.taskid, level: 2 });
  } else if (message.stream === '__heartbeat') {
    send({ command: 'sync' });
  } else if (Array.isArray(message)) {
    send({ command: 'log', msg: 'went to ' + message.join(), level: 1 });
  } else {
    // Asynchronous, so that a heartbeat may be answered first.
    setTimeout(() => {
      for (const word of message.tuple[0].split(' ')) {
        send({ command: 'emit', anchors: [message.id], tuple: [word], need_task_ids: word.length % 2 === 0 });
      }
      send({ command: 'ack', id: message.id });
    }, message.tuple[0].startsWith('late') ? 50 : 0);
  }
}
