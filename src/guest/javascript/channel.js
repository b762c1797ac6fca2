// SPDX-License-Identifier: Apache-2.0
// channel.js - The javascript kernel's descriptors: JSON lines with the host on 3 and 4, text on 1 and 2.
//
// Theory of operation. 1 and 2 are written with blocking writes, process.stdout and process.stderr are replaced by
// streams that do only that. node would make the pipes non-blocking, which breaks the programs that inherit
// them. 3 and 4 were made close-on-exec by node at its start.
//
// 3 is read by the event loop, and by `waitFor` while javascript is running.
//
// Failure model: end of file on 3, or a broken 4, ends the process at once.
'use strict';

const fs = require('fs');
const net = require('net');
const { Writable } = require('stream');

const CONTROL_IN = 3;
const CONTROL_OUT = 4;

// The code may replace these; the driver keeps the originals.
const { readSync, writeSync } = fs;
const { stringify, parse } = JSON;
const reallyExit = process.reallyExit.bind(process);

const cell = new Int32Array(new SharedArrayBuffer(4));
const nap = (ms = 1) => Atomics.wait(cell, 0, 0, ms);

// Returns false if the reader has closed.
function writeAll(fd, data) {
	for (let done = 0; done < data.length; ) {
		try {
			done += writeSync(fd, data, done, data.length - done);
		} catch (e) {
			if (e.code !== 'EAGAIN') return false;
			nap();
		}
	}
	return true;
}

function send(message) {
	if (!writeAll(CONTROL_OUT, Buffer.from(stringify(message) + '\n'))) reallyExit(0);
}

// A Writable by name and shape, with no state that an interrupt could leave incomplete. Output is dropped while `isMuted`
// returns true.
class TextStream extends Writable {
	constructor(fd, isMuted) {
		super();
		this.fd = fd;
		this.isMuted = isMuted;
		this.setMaxListeners(0);
	}
	write(chunk, encoding, callback) {
		if (typeof encoding === 'function') [encoding, callback] = ['utf8', encoding];
		if (!this.isMuted()) writeAll(this.fd, typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk);
		if (typeof callback === 'function') process.nextTick(callback);
		return true;
	}
	end(chunk, encoding, callback) {
		if (chunk !== undefined && chunk !== null && typeof chunk !== 'function') this.write(chunk, encoding);
		for (const f of [chunk, encoding, callback]) if (typeof f === 'function') process.nextTick(f);
		return this;
	}
	destroy() {
		return this;
	}
	cork() {}
	uncork() {}
}

const control = {
	pieces: [],
	receive: null,
	feed(chunk) {
		let from = 0;
		for (let at; (at = chunk.indexOf(10, from)) >= 0; from = at + 1) {
			const line = Buffer.concat([...this.pieces, chunk.slice(from, at)]);
			this.pieces = [];
			let message = null;
			try {
				message = parse(line.toString());
			} catch (e) {
				continue;
			}
			this.receive(message);
		}
		if (from < chunk.length) this.pieces.push(Buffer.from(chunk.slice(from)));
	},
	// open(RECEIVE): RECEIVE gets each message of the host, from the loop or from waitFor.
	open(receive) {
		this.receive = receive;
		const socket = new net.Socket({ fd: CONTROL_IN, readable: true, writable: false });
		socket.on('data', (chunk) => this.feed(chunk));
		for (const event of ['end', 'close', 'error']) socket.on(event, () => reallyExit(0));
	},
	waitFor(condition) {
		const chunk = Buffer.alloc(65536);
		while (!condition()) {
			try {
				const n = readSync(CONTROL_IN, chunk, 0, chunk.length, null);
				if (n === 0) reallyExit(0);
				this.feed(chunk.slice(0, n));
			} catch (e) {
				if (e.code !== 'EAGAIN') reallyExit(0);
				nap();
			}
		}
	},
};

module.exports = { TextStream, control, nap, send, writeAll };
