// Loaded before a component: `require('./storm')` is ours where the component's folder has none.
'use strict';

const Module = require('module');
const path = require('path');

const resolve = Module._resolveFilename;

Module._resolveFilename = function (request, ...rest) {
    try {
        return resolve.call(this, request, ...rest);
    } catch (error) {
        if (error.code === 'MODULE_NOT_FOUND' && /^(\.{0,2}\/.*)?storm(\.js)?$/.test(request)) {
            return path.join(__dirname, 'storm.js');
        }
        throw error;
    }
};
