// A spout of Storm's storm.js: three words, and another for each that fails.
const storm = require('./storm');

class Words extends storm.Spout {
    initialize(conf, context, done) {
        this.left = [['js1', 'ant'], ['js2', 'fail'], ['js3', conf['test.word']]];
        done();
    }

    // Storm's own do not say that they are done, and Storm waits for that.
    activate(done) {
        done();
    }

    deactivate(done) {
        done();
    }

    nextTuple(done) {
        if (this.left.length === 0) {
            done();
            return;
        }
        const [id, word] = this.left.shift();
        this.emit({tuple: [word], id: id}, () => done());
    }

    ack(id, done) {
        this.logInfo('storm.js was told of the ack of ' + id);
        done();
    }

    fail(id, done) {
        this.left.push([id, 'again']);
        done();
    }
}

new Words().run();
