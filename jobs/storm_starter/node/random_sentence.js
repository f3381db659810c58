// Emits made-up sentences, as many as `rows.count` says; the same ones in each run, and again after a failure.
'use strict';

const { Spout } = require('storm');

const SENTENCES = [
    'the cow jumped over the moon',
    'an apple a day keeps the doctor away',
    'four score and seven years ago',
    'snow white and the seven dwarfs',
    'i am at two with nature',
];

class RandomSentence extends Spout {
    initialize(conf, context, done) {
        this.count = conf['rows.count'];
        this.next = 0;
        this.failed = [];
        done();
    }

    nextTuple(done) {
        const number = this.failed.length ? this.failed.pop() : this.next < this.count ? this.next++ : null;
        if (number === null) {
            done();
            return;
        }
        this.emit({ tuple: [SENTENCES[(number * 7) % SENTENCES.length]], id: String(number) }, () => {});
        done();
    }

    fail(id, done) {
        this.failed.push(Number(id));
        done();
    }
}

new RandomSentence().run();
