// A bolt of Storm's storm.js that does what the word of its input says.
const storm = require('./storm');

class Says extends storm.BasicBolt {
    initialize(conf, context, done) {
        this.suffix = conf['test.suffix'];
        done();
    }

    process(tup, done) {
        const word = tup.values[0];
        if (word === 'fail') {
            done(new Error('as asked'));
            return;
        }
        if (word === 'log') {
            this.logWarn('a warning from storm.js');
        } else if (word === 'error') {
            this.sendMsgToParent({command: 'error', msg: 'an error from storm.js'});
        } else if (word === 'metric') {
            this.sendMsgToParent({command: 'metrics', name: 'hits', params: 3});
        } else if (word === 'raise') {
            throw new Error('raised in storm.js');
        }
        this.emit({tuple: [word + this.suffix], anchorTupleId: tup.id}, (tasks) => {
            this.emit({tuple: [tasks], stream: 'tasks', anchorTupleId: tup.id}, () => done());
        });
    }
}

new Says().run();
