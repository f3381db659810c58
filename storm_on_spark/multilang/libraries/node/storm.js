// Storm's multilang protocol for components in Node, with the names that components take from `storm`.
// Messages are JSON, each followed by a line `end`. The classes are functions: older components call them.
'use strict';

const fs = require('fs');
const path = require('path');
const { StringDecoder } = require('string_decoder');

const END = '\nend\n';

function Storm() {
    // Not in the methods alone: a class of the older kind may forget to call this.
    prepare(this);
}

function prepare(component) {
    if (component.taskIdsCallbacks === undefined) {
        component.taskIdsCallbacks = [];
        component.messagePart = '';
        component.isFirstMessage = true;
    }
}

// Starts to listen.
Storm.prototype.run = function () {
    prepare(this);
    const decoder = new StringDecoder('utf8');
    process.stdin.on('data', (data) => {
        const parts = (this.messagePart + decoder.write(data)).split(END);
        this.messagePart = parts.pop();
        parts.filter((part) => part.length > 0).forEach((part) => this.handleNewMessage(part));
    });
    // Nobody is there any more.
    process.stdin.on('end', () => process.exit(0));
};

Storm.prototype.handleNewMessage = function (text) {
    const message = JSON.parse(text);
    if (this.isFirstMessage) {
        this.isFirstMessage = false;
        this.initialize(message.conf, message.context, () => this.sendPid(message.pidDir));
    } else if (Array.isArray(message)) {
        const told = this.taskIdsCallbacks.shift();
        if (told === undefined) {
            throw new Error('task ids came that no emit waits for');
        }
        told(message);
    } else {
        this.handleNewCommand(message);
    }
};

// To be overridden; `done` is to be called at its end.
Storm.prototype.initialize = function (conf, context, done) {
    done();
};

Storm.prototype.sendMsgToParent = function (message) {
    process.stdout.write(JSON.stringify(message) + END);
};

Storm.prototype.sendPid = function (folder) {
    fs.writeFileSync(path.join(folder, String(process.pid)), '');
    this.sendMsgToParent({ pid: process.pid });
};

Storm.prototype.sync = function () {
    this.sendMsgToParent({ command: 'sync' });
};

Storm.prototype.log = function (msg, level) {
    this.sendMsgToParent({ command: 'log', msg: msg, level: level === undefined ? 2 : level });
};

['Trace', 'Debug', 'Info', 'Warn', 'Error'].forEach((name, level) => {
    Storm.prototype['log' + name] = function (msg) {
        this.log(msg, level);
    };
});

Storm.prototype.reportError = function (msg) {
    this.sendMsgToParent({ command: 'error', msg: String(msg) });
};

// Emits details.tuple; `onTaskIds` is called with the tasks that get it.
Storm.prototype.emit = function (details, onTaskIds) {
    if (details.task) {
        throw new Error('emit takes no task: use emitDirect');
    }
    if (typeof onTaskIds !== 'function') {
        throw new Error('emit takes a function that is called with the ids of tasks');
    }
    prepare(this);
    this.taskIdsCallbacks.push(onTaskIds);
    this.__emit(details);
};

// Emits details.tuple to the task details.task.
Storm.prototype.emitDirect = function (details) {
    if (!details.task) {
        throw new Error('emitDirect takes the id of a task: {tuple: [...], task: 4}');
    }
    this.__emit(details);
};

function Tuple(id, component, stream, task, values) {
    this.id = id;
    this.component = component;
    this.stream = stream;
    this.task = task;
    this.values = values;
}

Tuple.prototype.isTickTuple = function () {
    return this.task === -1 && this.stream === '__tick';
};

Tuple.prototype.isHeartbeatTuple = function () {
    return this.task === -1 && this.stream === '__heartbeat';
};

// A bolt: `process(tuple, done)` is called with each input, which is acked by done(), and failed by done(error).
function BasicBolt() {
    Storm.call(this);
}

BasicBolt.prototype = Object.create(Storm.prototype, { constructor: { value: BasicBolt, writable: true } });

BasicBolt.prototype.process = function (tuple, done) {
    done();
};

BasicBolt.prototype.ack = function (tuple) {
    this.sendMsgToParent({ command: 'ack', id: tuple.id });
};

BasicBolt.prototype.fail = function (tuple, error) {
    this.sendMsgToParent({ command: 'fail', id: tuple.id });
};

BasicBolt.prototype.handleNewCommand = function (command) {
    const tuple = new Tuple(command.id, command.comp, command.stream, command.task, command.tuple);
    if (tuple.isHeartbeatTuple()) {
        this.sync();
        return;
    }
    this.process(tuple, (error) => (error ? this.fail(tuple, error) : this.ack(tuple)));
};

BasicBolt.prototype.__emit = function (details) {
    const anchor = details.anchorTupleId;
    this.sendMsgToParent({
        command: 'emit',
        tuple: details.tuple,
        stream: details.stream,
        task: details.task,
        anchors: Array.isArray(anchor) ? anchor : anchor ? [anchor] : [],
    });
};

// A spout: each of its methods calls `done` at its end.
function Spout() {
    Storm.call(this);
}

Spout.prototype = Object.create(Storm.prototype, { constructor: { value: Spout, writable: true } });

['nextTuple', 'activate', 'deactivate'].forEach((name) => {
    Spout.prototype[name] = function (done) {
        done();
    };
});

['ack', 'fail'].forEach((name) => {
    Spout.prototype[name] = function (id, done) {
        done();
    };
});

Spout.prototype.handleNewCommand = function (command) {
    const done = () => this.sync();
    switch (command.command) {
        case 'next':
            this.nextTuple(done);
            break;
        case 'ack':
        case 'fail':
            this[command.command](command.id, done);
            break;
        case 'activate':
        case 'deactivate':
            this[command.command](done);
            break;
        default:
            done();
    }
};

Spout.prototype.__emit = function (details) {
    this.sendMsgToParent({
        command: 'emit',
        tuple: details.tuple,
        id: details.id,
        stream: details.stream,
        task: details.task,
    });
};

module.exports = { BasicBolt, Spout };
