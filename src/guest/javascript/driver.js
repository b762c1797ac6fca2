// SPDX-License-Identifier: Apache-2.0
// driver.js - The javascript kernel: runs code in one node process that lives on, and exchanges JSON lines
// with the host.
//
// Theory of operation
//
// Goals: the features of a REPL (state kept, names declared again, top-level await, the last expression as
// result) for code as people write it for files (static import, __dirname, require.main === module). node 12
// to 22, no package, no flag.
//
// This file has the life of an execution. Beside it: compile.js (rewrites and compiles code), sigint.js
// (interrupts), channel.js (descriptors), errors.js and display.js (output), modules.js (imports), mcp.js (the
// agent's tools). In a cell all of them are one file (tools/inline-js.py).
//
// Nothing in the driver waits in an async function: an execution is a chain of callbacks from the event
// loop (start, advance, settle, conclude, report). Terminating V8 in the middle of microtasks drops all
// queued microtasks, and ours must not be among them.
//
// process.exit(n) throws an object that ends the execution with status n; from then on the execution's
// output is dropped, so that code which catches the object can print nothing. Exceptions and rejections
// that the code does not handle are written to 2 and never end the process.
//
// Failure model: end of file on 3, or a broken 4, ends the process at once. The code can break the driver
// if it tries (it is the same process); it then has a broken kernel in its own cell.
'use strict';

const { TextStream, control, nap, send } = require('./channel.js');
const { compile, parseCode, part } = require('./compile.js');
const { acknowledged, bundle, display, limited } = require('./display.js');
const { Exit, complain, describe, hideFrames, remember } = require('./errors.js');
const { modules } = require('./modules.js');
const { GUARD, INTERRUPT, guard, guardCall, sigint } = require('./sigint.js');

const POLL_MS = 25;
const STALE_MS = 5;
const STORM_MS = 1000;

// The code may replace these; the driver keeps the originals.
const now = Date.now;
const { setImmediate, setInterval, clearInterval } = global;
const tick = process._tickCallback ? process._tickCallback.bind(process) : () => {};

// --- from the host

const inputs = new Map();
const queue = [];

function receive(message) {
	if (!message || typeof message !== 'object') return;
	if (message.type === 'ack') {
		acknowledged();
	} else if (message.type === 'input_response' && inputs.has(message.id)) {
		const { resolve, reject } = inputs.get(message.id);
		inputs.delete(message.id);
		if (message.eof) reject(named('EOFError', 'end of input'));
		else if (message.error !== undefined && message.error !== null) reject(new Error(`input: ${message.error}`));
		else resolve(String(message.value));
	} else if (message.type === 'packages') { // node finds packages by NODE_PATH, which it reads once
		Object.assign(process.env, message.env);
		require('module').Module._initPaths();
	} else if (codeMode && (message.type === 'rpc_part' || message.type === 'rpc_response')) {
		codeMode.receive(message);
	} else if (message.type === 'execute') {
		queue.push(message);
		if (!current && queue.length === 1) setImmediate(start);
	}
}

// --- the agent's tools, in sandboxes that have some

let codeMode = null;
const loadCodeMode = () => (codeMode = require('./mcp.js')(send));

// --- questions of the code to the host

let inputId = 0;

function named(name, text) {
	const error = new Error(text);
	error.name = name;
	return error;
}

function input(prompt = '', { password = false } = {}) {
	return new Promise((resolve, reject) => {
		if (!current) throw new Error('input: no execution is running');
		inputs.set(++inputId, { resolve, reject });
		send({ type: 'input_request', id: inputId, prompt: String(prompt), password: Boolean(password) });
	});
}

// --- one execution after the other

let current = null;
let reportedAt = 0;

function start() {
	if (current || !queue.length) return;
	const { id, code, name, mcp } = queue.shift();
	const run = { id, name: name || '<sandbox>', code: String(code), muted: false, exit: null, over: false, timer: null, generator: null };
	current = run;
	modules.refresh();
	const ready = mcp && typeof mcp === 'object' ? (codeMode || loadCodeMode()).enter(mcp, run.name, run.code) : null;
	remember(run.name, run.code);
	if (!ready) return begin(run);
	watch(run);
	ready.then(() => setImmediate(() => run.over || begin(run)));
}

function watch(run) {
	clearInterval(run.timer);
	run.timer = setInterval(() => {
		if (sigint.take()) settle(run, { error: INTERRUPT });
	}, POLL_MS);
}

function begin(run) {
	let call;
	try {
		call = compile(run.code, run.name);
	} catch (error) {
		settle(run, { error });
		return;
	}
	// Earlier signals: another thread sets their marks, which may take a moment, and longer with many signals.
	if (now() - sigint.seenAt < STORM_MS) nap(STALE_MS);
	else if (now() - reportedAt < STALE_MS) nap();
	for (let i = 0; i < 20 && sigint.take(); i++) nap();
	watch(run);
	advance(run, call);
}

const isThenable = (v) => v !== null && (typeof v === 'object' || typeof v === 'function') && typeof v.then === 'function';

// Run one part of the code after the other, `call` first, while the awaited values need no event loop.
// The microtasks are run here, under the guard, because they belong to the code and may not end. Many short
// parts share one guard, because a signal at the end of a guard is lost. Returns {value}, or {waiting, resume}:
// continue with `resume` when `waiting` has its result.
function runParts(run, call) {
	const until = now() + POLL_MS;
	for (;;) {
		const { generator = null, awaited, value } = call();
		if (generator) run.generator = generator;
		else if (!isThenable(value)) return { value };
		const waiting = { result: null, notify: null };
		const arrive = (method) => (got) => {
			waiting.result = { method, got };
			if (waiting.notify) setImmediate(waiting.notify);
		};
		Promise.resolve(generator ? awaited : value).then(arrive('next'), arrive('throw'));
		tick();
		call = () => {
			const { method, got } = waiting.result;
			if (generator) return part(generator, method, got);
			if (method === 'throw') throw got;
			return { value: got };
		};
		if (!waiting.result || now() > until) return { waiting, resume: call };
	}
}

function advance(run, call) {
	if (run.over) return;
	let outcome;
	try {
		outcome = guard(() => runParts(run, call));
	} catch (error) {
		settle(run, { error });
		return;
	}
	const { waiting, resume, value } = outcome;
	if (!waiting) {
		settle(run, { value });
		return;
	}
	waiting.notify = () => advance(run, resume);
	if (waiting.result) setImmediate(waiting.notify);
}

// settle(RUN, {value} | {error}): the end, once. Messages of unhandled rejections are written before the execution
// is reported.
function settle(run, outcome) {
	if (run.over) return;
	run.over = true;
	clearInterval(run.timer);
	if (codeMode && outcome.error === INTERRUPT) codeMode.end(true);
	if (outcome.error === INTERRUPT && run.generator) {
		sigint.take();
		try {
			guard(() => run.generator.return());
		} catch (e) {
			// A `finally` of the code has failed: the execution is over anyway.
		}
	}
	setImmediate(() => conclude(run, outcome));
}

function conclude(run, outcome) {
	let status = 'ok';
	let exitCode = 0;
	const exit = outcome.error instanceof Exit ? outcome.error : run.exit;
	try {
		if (exit) {
			exitCode = exit.code;
		} else if ('error' in outcome) {
			throw outcome.error;
		} else {
			if (outcome.value !== undefined) {
				const shown = guard(() => limited(bundle(outcome.value), 'result'));
				send({ type: 'result', ...shown, metadata: {} });
			}
			exitCode = Number(process.exitCode) & 255;
		}
		status = exitCode === 0 ? 'ok' : 'error';
	} catch (error) {
		status = 'error';
		exitCode = 1;
		let message = { name: 'KeyboardInterrupt', value: 'interrupted', traceback: [] };
		let interrupted = error === INTERRUPT;
		if (!interrupted) {
			try {
				message = describe(error);
			} catch (e) {
				// A command that SIGINT ended fails first; the signal is noticed only here.
				interrupted = e === INTERRUPT;
				if (!interrupted) message = { name: 'Error', value: 'an error that cannot be shown', traceback: [] };
			}
		}
		if (interrupted) {
			status = 'interrupted';
			exitCode = 130;
		}
		send(Object.assign({ type: 'error' }, message));
	}
	setImmediate(() => report(run, status, exitCode));
}

function report(run, status, exitCode) {
	process.exitCode = undefined;
	inputs.clear();
	if (codeMode) codeMode.end(false);
	current = null;
	reportedAt = now();
	send({ type: 'execution_done', id: run.id, status, exit_code: exitCode });
	if (queue.length) setImmediate(start);
}

// --- the globals of the code

function exit(code) {
	if (code === undefined || code === null) code = process.exitCode;
	const thrown = new Exit(Number(code) & 255);
	const run = current;
	if (run && !run.over && !run.exit) {
		run.exit = thrown;
		run.muted = true;
		setImmediate(() => settle(run, { error: thrown }));
	}
	throw run && run.exit ? run.exit : thrown;
}

function hidden(object, name, value) {
	Object.defineProperty(object, name, { value, writable: true, configurable: true, enumerable: false });
}

function main() {
	hideFrames(Object.keys(require.cache)); // in a cell they are one file
	for (const [name, fd] of [['stdout', 1], ['stderr', 2]]) {
		const stream = new TextStream(fd, () => current && current.muted);
		Object.defineProperty(process, name, { configurable: true, enumerable: true, get: () => stream });
	}
	Object.defineProperty(globalThis, GUARD, { value: guardCall });
	hidden(globalThis, 'display', display);
	hidden(globalThis, 'input', input);
	Object.defineProperty(globalThis, '__caisson', {
		value: Object.freeze({
			import: (...a) => modules.import(...a),
			get meta() {
				return modules.meta;
			},
		}),
	});
	process.exit = exit;
	process.argv.length = 1;
	process.on('uncaughtException', (error) => complain(error, 'Uncaught '));
	process.on('unhandledRejection', (error) => complain(error, 'Uncaught (in promise) '));
	sigint.open();
	modules.refresh();
	control.open(receive);
	send({ type: 'ready', language: 'javascript', version: process.versions.node, pid: process.pid });
	setImmediate(() => parseCode(''));
}

main();
