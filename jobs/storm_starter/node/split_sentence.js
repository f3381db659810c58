// Emits the words of each sentence, anchored to it.
'use strict';

const { BasicBolt } = require('storm');

class SplitSentence extends BasicBolt {
    process(tuple, done) {
        tuple.values[0].split(' ').forEach((word) => {
            this.emit({ tuple: [word], anchorTupleId: tuple.id }, () => {});
        });
        done();
    }
}

new SplitSentence().run();
