// SPDX-License-Identifier: Apache-2.0
// driver.js - The javascript kernel: runs code in one node process that lives on, and speaks JSON lines
// with the host.
//
// Theory of operation
//
// Goals: what a REPL gives (state kept, names declared again, top-level await, the last expression as
// result) to code as people write it for files (static import, __dirname, require.main === module). node 12
// to 22, no package, no flag.
//
// Code is rewritten before it is compiled (`rewrite`), by edits that keep every line where it is. The
// parser is the acorn that every node carries for its own REPL; without it, or for syntax it does not know,
// the code runs as it stands.
//  - Top-level const, let and class become var: globals, which the next execution sees and may declare again.
//  - Code without top-level await is a plain script. Code with it becomes a generator, `await x` becomes
//    `yield x`, and the driver steps it. So each part between two awaits runs under the same guard as a
//    script, and an interrupted execution goes no further.
//  - import(), import.meta and import declarations go through `__caisson`, which resolves them from the
//    working directory.
//
// Nothing in the driver waits in an async function: an execution is a chain of callbacks from the event
// loop (start, advance, settle, conclude, report). Terminating V8 in the middle of microtasks throws all
// queued microtasks away, and ours must not be among them.
//
// SIGINT: node's own watchdog thread (what `breakOnSigint` starts) is started once and never stopped, so
// there is no moment in which the signal has its deadly default. During `guard` it terminates the running
// javascript; else it leaves a mark, which is polled while an execution waits and wiped when one starts.
// Not interruptible: a loop without end in a callback, or after an await inside a function. Lost: a signal in
// the microsecond in which a guard ends, because node then wipes the mark. The host's next step is to kill.
//
// Output: 1 and 2 are written with blocking writes, process.stdout and process.stderr are replaced by
// streams that do only that. node would make the pipes non-blocking, which breaks the programs that inherit
// them. 3 and 4 were made close-on-exec by node at its start.
//
// process.exit(n) throws an object that ends the execution with status n; from then on the execution's
// output is dropped, so that code which catches the object has nothing to say. Exceptions and rejections
// that nobody handles are written to 2 and never end the process.
//
// Failure model: end of file on 3, or a broken 4, ends the process at once. The code can break the driver
// if it tries (it is the same process); it then has a broken kernel in its own cell.
'use strict';

const fs = require('fs');
const net = require('net');
const path = require('path');
const url = require('url');
const util = require('util');
const vm = require('vm');
const { Writable } = require('stream');
const { createRequire, builtinModules } = require('module');
const { executionAsyncId } = require('async_hooks');

const CONTROL_IN = 3;
const CONTROL_OUT = 4;
const BUNDLE_MAX_BYTES = 8 << 20;
const TEXT_MAX_CHARS = 1 << 20;
const POLL_MS = 25;
const STALE_MS = 5;
const STORM_MS = 1000;
const SOURCES_MAX = 200;

// The code may replace these; the driver goes on with what it found.
const { readSync, writeSync } = fs;
const { stringify, parse } = JSON;
const { setImmediate, setInterval, clearInterval } = global;
const inspect = util.inspect;
const reallyExit = process.reallyExit.bind(process);
const tick = process._tickCallback ? process._tickCallback.bind(process) : () => {};

const INTERRUPT = { toString: () => 'interrupted' };

class Exit {
	constructor(code) {
		Object.defineProperty(this, 'code', { value: code });
	}
	[inspect.custom]() {
		return `process.exit(${this.code})`;
	}
}

// --- bytes

const cell = new Int32Array(new SharedArrayBuffer(4));
const nap = (ms = 1) => Atomics.wait(cell, 0, 0, ms);
const now = Date.now;

// Return: false if nobody reads any more.
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

// A Writable in name and shape, with nothing inside that an interrupt could leave half done.
class TextStream extends Writable {
	constructor(fd) {
		super();
		this.fd = fd;
		this.setMaxListeners(0);
	}
	write(chunk, encoding, callback) {
		if (typeof encoding === 'function') [encoding, callback] = ['utf8', encoding];
		if (!current || !current.muted) writeAll(this.fd, typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk);
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

// --- control in: read by the event loop, and by `waitFor` while javascript is running

const control = {
	pieces: [],
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
			receive(message);
		}
		if (from < chunk.length) this.pieces.push(Buffer.from(chunk.slice(from)));
	},
	open() {
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

const acks = { sent: 0, got: 0 };
const inputs = new Map();
const queue = [];

function receive(message) {
	if (!message || typeof message !== 'object') return;
	if (message.type === 'ack') {
		acks.got = Math.min(acks.got + 1, acks.sent); // one that nobody waits for is no credit
	} else if (message.type === 'input_response' && inputs.has(message.id)) {
		const { resolve, reject } = inputs.get(message.id);
		inputs.delete(message.id);
		if (message.eof) reject(named('EOFError', 'end of input'));
		else if (message.error !== undefined && message.error !== null) reject(new Error(`input: ${message.error}`));
		else resolve(String(message.value));
	} else if (message.type === 'packages') { // what was installed is found by NODE_PATH, which is read once
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

function named(name, text) {
	const error = new Error(text);
	error.name = name;
	return error;
}

// --- SIGINT

// The watchdog's switches are not public, but have been there from node 10 on. Without them: an ordinary
// listener, which leaves short moments around `guard` in which the signal is deadly.
const sigint = {
	binding: null,
	heard: false,
	seenAt: 0,
	open() {
		try {
			const binding = quietly(() => process.binding('contextify'));
			binding.startSigintWatchdog();
			this.binding = binding;
		} catch (e) {
			process.on('SIGINT', () => {
				this.heard = true;
			});
			return;
		}
		// A listener of the code's own would take the signal away from the watchdog: it is
		// registered, but hears nothing.
		for (const listener of process.listeners('newListener')) {
			if (listener.name !== 'startListeningIfSignal') continue;
			process.removeListener('newListener', listener);
			process.on('newListener', (type) => {
				if (type !== 'SIGINT') listener(type);
			});
		}
	},
	// Is there a mark?
	pending() {
		return this.binding ? this.binding.watchdogHasPendingSigint() : this.heard;
	},
	// The same, and wipes it: one more start and stop does that, while the first start stays in force.
	take() {
		let heard = this.heard;
		this.heard = false;
		if (this.binding) {
			this.binding.startSigintWatchdog();
			heard = this.binding.stopSigintWatchdog();
		}
		if (heard) this.seenAt = now();
		return heard;
	},
};

const GUARD = Symbol.for('caisson.guard');
const guardScript = new vm.Script("globalThis[Symbol.for('caisson.guard')].call()", { filename: __filename });
const guardCall = { call: null };

// f(), and nothing from node about what is experimental or deprecated in it.
function quietly(f) {
	const { emitWarning } = process;
	process.emitWarning = () => {};
	try {
		return f();
	} finally {
		process.emitWarning = emitWarning;
	}
}

// What was terminated has not left the asynchronous contexts it had entered, and node ends the process when
// it finds that.
function leaveAsyncContexts(context) {
	try {
		const { popAsyncContext } = quietly(() => process.binding('async_wrap'));
		for (let i = 0; i < 1000 && executionAsyncId() !== context; i++) popAsyncContext(executionAsyncId());
	} catch (e) {
		// Not to be had: it may go well.
	}
}

// guard(f): f(), ended by SIGINT. Throws what f throws, or INTERRUPT. A guard within a guard is the outer one.
function guard(f) {
	if (guardCall.call) return f();
	const context = executionAsyncId();
	let value;
	let thrown = null;
	guardCall.call = () => {
		try {
			// From here on a signal terminates. One that came a moment ago has left a mark.
			if (sigint.pending()) throw INTERRUPT;
			value = f();
		} catch (e) {
			thrown = { e };
		}
	};
	try {
		guardScript.runInThisContext({ breakOnSigint: true, displayErrors: false });
	} catch (e) {
		sigint.seenAt = now();
		leaveAsyncContexts(context);
		throw INTERRUPT;
	} finally {
		guardCall.call = null;
	}
	if (thrown) throw thrown.e;
	return value;
}

// --- from source to something that can be run

function loadAcorn() {
	const module = { exports: {} };
	try {
		const source = quietly(() => process.binding('natives'))['internal/deps/acorn/acorn/dist/acorn'];
		vm.runInThisContext(`(function (exports, module, define) {${source}\n})`, { filename: 'acorn.js' })(module.exports, module);
	} catch (e) {
		try {
			module.exports = require('/usr/share/nodejs/acorn/dist/acorn.js');
		} catch (e2) {
			return null;
		}
	}
	const acorn = module.exports;
	if (typeof acorn.parse !== 'function') return null;
	const options = {
		ecmaVersion: parseInt(acorn.version) < 8 ? 2020 : 'latest',
		allowAwaitOutsideFunction: true,
		allowImportExportEverywhere: true,
		allowHashBang: true,
	};
	return (code) => acorn.parse(code, options);
}

let parser;

function parseCode(code) {
	if (parser === undefined) parser = loadAcorn();
	if (!parser) return null;
	try {
		return parser(code);
	} catch (e) {
		return null;
	}
}

// Collects insertions and replacements, applies them at once.
class Edits {
	constructor(code) {
		this.code = code;
		this.list = [];
	}
	replace(from, to, text) {
		this.list.push({ from, to, text, order: this.list.length });
	}
	// At one place what was asked for later stands further out: text before is put before, text after is put after.
	before(at, text) {
		this.list.push({ from: at, to: at, text, order: -this.list.length });
	}
	after(at, text) {
		this.list.push({ from: at, to: at, text, order: this.list.length - 1e9 });
	}
	apply() {
		this.list.sort((a, b) => a.from - b.from || a.order - b.order);
		let out = '';
		let at = 0;
		for (const edit of this.list) {
			out += this.code.slice(at, edit.from) + edit.text;
			at = edit.to;
		}
		return out + this.code.slice(at);
	}
}

function* children(node) {
	for (const key of Object.keys(node)) {
		const value = node[key];
		if (Array.isArray(value)) {
			for (const item of value) if (item && typeof item.type === 'string') yield item;
		} else if (value && typeof value.type === 'string') {
			yield value;
		}
	}
}

function patternNames(node, names) {
	if (!node) return;
	switch (node.type) {
		case 'Identifier':
			names.add(node.name);
			break;
		case 'ObjectPattern':
			for (const p of node.properties) patternNames(p.type === 'Property' ? p.value : p.argument, names);
			break;
		case 'ArrayPattern':
			for (const e of node.elements) patternNames(e, names);
			break;
		case 'RestElement':
			patternNames(node.argument, names);
			break;
		case 'AssignmentPattern':
			patternNames(node.left, names);
			break;
	}
}

const isFunction = (node) => /Function/.test(node.type);

// Is there an await (or for await) that belongs to the program itself?
function hasAwait(node) {
	if (node.type === 'AwaitExpression' || (node.type === 'ForOfStatement' && node.await)) return true;
	for (const child of children(node)) if (!isFunction(child) && hasAwait(child)) return true;
	return false;
}

function importText(node) {
	const call = `yield __caisson.import(${node.source.raw})`;
	const parts = [];
	for (const s of node.specifiers) {
		if (s.type === 'ImportNamespaceSpecifier') return `${s.local.name} = ${call};`;
		const imported = s.type === 'ImportDefaultSpecifier' ? 'default' : s.imported.name || s.imported.raw;
		parts.push(`${imported}: ${s.local.name}`);
	}
	return parts.length ? `({ ${parts.join(', ')} } = ${call});` : `${call};`;
}

class Rewriter {
	constructor(code, program) {
		this.code = code;
		this.program = program;
		this.edits = new Edits(code);
		this.names = new Set();
		this.functions = [];
		const body = program.body.filter((n) => n.type !== 'EmptyStatement');
		this.last = body.length ? body[body.length - 1] : null;
		this.hasValue = Boolean(this.last && this.last.type === 'ExpressionStatement');
		this.isGenerator = program.body.some((n) => n.type === 'ImportDeclaration' || hasAwait(n));
	}

	run() {
		this.walk(this.program, null, false, false);
		for (const node of this.program.body) this.statement(node);
		const source = this.edits.apply();
		if (!this.isGenerator) return { source, columns: 0 };
		const strict = this.program.body.length && this.program.body[0].directive === 'use strict' ? '"use strict"; ' : '';
		const vars = this.names.size ? `var ${[...this.names].join(', ')}; ` : '';
		const exports = this.functions.map((f) => `globalThis.${f} = ${f}; `).join('');
		const head = `${strict}${vars}(function* () {${exports}`;
		return { source: `${head}${source}\n})`, columns: head.length };
	}

	statement(node) {
		switch (node.type) {
			case 'VariableDeclaration':
				this.declaration(node);
				break;
			case 'ClassDeclaration':
				this.names.add(node.id.name);
				this.edits.before(node.start, `${this.isGenerator ? '' : 'var '}${node.id.name} = `);
				this.edits.after(node.end, ';');
				break;
			case 'FunctionDeclaration':
				if (this.isGenerator) this.functions.push(node.id.name);
				break;
			case 'ImportDeclaration':
				for (const s of node.specifiers) this.names.add(s.local.name);
				this.edits.replace(node.start, node.end, this.lines(node, importText(node)));
				break;
			case 'ExportNamedDeclaration':
				this.edits.replace(node.start, node.declaration ? node.declaration.start : node.end, '');
				if (node.declaration) this.statement(node.declaration);
				break;
			case 'ExportDefaultDeclaration':
				this.edits.replace(node.start, node.declaration.start, 'void ');
				break;
			case 'ExpressionStatement':
				if (node === this.last && this.isGenerator) {
					this.edits.before(node.start, 'return (');
					this.edits.after(node.end - (this.code[node.end - 1] === ';' ? 1 : 0), ')');
				}
				break;
		}
	}

	// The replacement of a node has as many line ends as the node had.
	lines(node, text) {
		return text + '\n'.repeat(this.code.slice(node.start, node.end).split('\n').length - 1);
	}

	declaration(node) {
		for (const d of node.declarations) patternNames(d.id, this.names);
		if (!this.isGenerator) {
			this.edits.replace(node.start, node.start + node.kind.length, 'var'.padEnd(node.kind.length));
			for (const d of node.declarations) if (!d.init && node.kind === 'let') this.edits.after(d.end, ' = void 0');
			return;
		}
		this.edits.replace(node.start, node.start + node.kind.length, 'void (');
		for (const d of node.declarations) {
			this.edits.before(d.start, '(');
			this.edits.after(d.end, !d.init && node.kind === 'let' ? ' = void 0)' : ')');
		}
		this.edits.after(node.declarations[node.declarations.length - 1].end, this.code[node.end - 1] === ';' ? ')' : ');');
	}

	// Depth first: inner edits are asked for before outer ones, see Edits.
	walk(node, parent, inFunction, inAsync) {
		const nowFunction = inFunction || isFunction(node);
		const nowAsync = inAsync || (!inFunction && node.type === 'ForOfStatement' && node.await);
		for (const child of children(node)) this.walk(child, node, nowFunction, nowAsync);
		if (node.type === 'ImportExpression' || node.type === 'Import') {
			this.edits.replace(node.start, node.start + 6, '__caisson.import');
		} else if (node.type === 'MetaProperty' && node.meta.name === 'import') {
			this.edits.replace(node.start, node.end, '__caisson.meta');
		}
		if (inFunction || !this.isGenerator) return;
		if (node.type === 'AwaitExpression' && !inAsync) {
			this.edits.replace(node.start, node.start + 5, '(yield (');
			this.edits.after(node.end, '))');
		} else if (node.type === 'ForOfStatement' && node.await && !inAsync) {
			this.edits.before(node.start, 'yield (async () => {');
			this.edits.after(node.end, '})();');
		} else if (node.type === 'VariableDeclaration' && node.kind === 'var' && parent !== this.program) {
			this.innerVar(node, parent);
		}
	}

	// `var` in a block of the program is the program's.
	innerVar(node, parent) {
		if (/^Export/.test(parent.type)) return;
		if (/^For/.test(parent.type) && parent.body !== node) {
			for (const d of node.declarations) patternNames(d.id, this.names);
			this.edits.replace(node.start, node.start + 3, '   ');
		} else {
			this.declaration(node);
		}
	}
}

// rewrite(CODE): what to compile. `columns` is by how much the first line has been moved.
function rewrite(code) {
	if (code.startsWith('#!')) code = `//${code.slice(2)}`;
	if (/^\s*\{/.test(code) && !/;\s*$/.test(code)) {
		// An object, as everybody but the grammar would say.
		const wrapped = `(${code}\n)`;
		if (parseCode(wrapped)) code = wrapped;
	}
	const program = parseCode(code);
	if (!program) return { source: code, columns: 0, names: [], isGenerator: false, hasValue: true };
	const rewriter = new Rewriter(code, program);
	const { source, columns } = rewriter.run();
	return { source, columns, names: [...rewriter.names], isGenerator: rewriter.isGenerator, hasValue: rewriter.hasValue };
}

// A global with a getter and no setter (crypto) would swallow `const crypto = ...`.
function makeRoom(names) {
	for (const name of names) {
		const found = Object.getOwnPropertyDescriptor(globalThis, name);
		if (found && found.configurable && !found.writable) {
			Object.defineProperty(globalThis, name, { value: undefined, writable: true, configurable: true, enumerable: true });
		}
	}
}

// compile(CODE, NAME): a function that runs the code up to the first await, see `part`. Throws SyntaxError,
// as V8 words it for the code as it was written.
function compile(code, name) {
	const plan = rewrite(code);
	let script;
	try {
		script = new vm.Script(plan.source, { filename: name, columnOffset: -plan.columns });
	} catch (e) {
		if (!/\bawait\b/.test(code)) {
			new vm.Script(code, { filename: name });
			throw e;
		}
		script = new vm.Script(`(async () => {\n${code}\n})()`, { filename: name, lineOffset: -1 });
		if (parser) throw e;
		// Without a parser there is await, but neither names that stay nor a last expression.
		plan.isGenerator = false;
	}
	return () => {
		makeRoom(plan.names);
		const value = script.runInThisContext({ displayErrors: false });
		if (plan.isGenerator) return part(value.call(globalThis), 'next');
		return { value: plan.hasValue ? value : undefined };
	};
}

// --- errors as text

const sources = new Map();

function remember(name, code) {
	sources.set(name, code.split('\n'));
	if (sources.size > SOURCES_MAX) sources.delete(sources.keys().next().value);
}

const DRIVER_FRAME = new RegExp(
	`^\\s+at .*(${__filename.replace(/[^\w]/g, '\\$&')}|\\bRunningScript\\b|Script\\.runInThisContext|Script\\.runInContext|` +
		`[( ]vm\\.js:|node:vm:|internal/vm|(Generator|Object)?\\.?next \\(<anonymous>\\)|new Script \\(|\\bprocessImmediate)`
);

function safeInspect(value, options) {
	let text;
	try {
		text = guard(() => inspect(value, options));
	} catch (e) {
		if (e === INTERRUPT) throw e;
		text = `<${typeof value} that cannot be shown: ${String(e && e.message)}>`;
	}
	if (text.length > TEXT_MAX_CHARS) text = `${text.slice(0, TEXT_MAX_CHARS)}\n... cut, ${text.length} characters in all`;
	return text;
}

// Takes the driver's frames out of an error and of what it says caused it, for good.
function trim(error, depth) {
	if (!error || typeof error !== 'object' || depth > 8) return;
	try {
		const own = Object.getOwnPropertyDescriptor(error, 'stack');
		if (own && typeof error.stack === 'string') {
			error.stack = error.stack.split('\n').filter((line) => !DRIVER_FRAME.test(line)).join('\n');
		}
		trim(error.cause, depth + 1);
		if (Array.isArray(error.errors)) error.errors.slice(0, 20).forEach((e) => trim(e, depth + 1));
	} catch (e) {
		// Frozen, or with getters of its own: it keeps its frames.
	}
}

// describe(ERROR): {name, value, traceback}: the line that failed, the error as node shows it, without the
// driver's frames.
function describe(error) {
	if (!(error instanceof Error) && !util.types.isNativeError(error)) {
		const text = safeInspect(error);
		return { name: 'Uncaught', value: typeof error === 'string' ? error : text, traceback: [`Uncaught ${text}`] };
	}
	trim(error, 0);
	let lines = safeInspect(error).split('\n');
	let own = [];
	try {
		own = String(error.stack).split('\n');
	} catch (e) {
		// A getter of the code's: the text has to do.
	}
	const caret = own.findIndex((line) => /^\s*\^+\s*$/.test(line));
	if (error instanceof SyntaxError && caret > 0 && !own.slice(0, caret).some((line) => /^\s+at /.test(line))) {
		lines = own.slice(0, own.findIndex((line) => /^\w*Error:/.test(line)) + 1);
	} else {
		lines = [...place(lines), ...lines];
	}
	let name = 'Error';
	let value = '';
	try {
		name = String(error.name);
		value = String(error.message);
	} catch (e) {
		// Likewise.
	}
	return { name, value, traceback: lines };
}

function place(lines) {
	for (const line of lines) {
		const found = /^\s+at (?:.*\()?(.+):(\d+):(\d+)\)?(?: \{)?$/.exec(line);
		const source = found && sources.get(found[1]);
		if (!source) continue;
		const text = source[found[2] - 1];
		if (text === undefined || text.length > 400) return [];
		return [`${found[1]}:${found[2]}`, text, ''];
	}
	return [];
}

// --- what the code can show and ask

const base64 = (data) => (typeof data === 'string' ? data : Buffer.from(data).toString('base64'));

function bundle(value) {
	const data = {};
	if (value !== null && (typeof value === 'object' || typeof value === 'function')) {
		try {
			const custom = value[Symbol.for('Jupyter.display')];
			if (typeof custom === 'function') Object.assign(data, custom.call(value));
			for (const [method, mime] of [['toHTML', 'text/html'], ['toSVG', 'image/svg+xml'], ['toMarkdown', 'text/markdown']]) {
				if (typeof value[method] === 'function') data[mime] = String(value[method]());
			}
		} catch (e) {
			complain(e, 'Cannot display: ');
		}
	}
	for (const mime of Object.keys(data)) if (data[mime] instanceof Uint8Array) data[mime] = base64(data[mime]);
	if (data['text/plain'] === undefined) data['text/plain'] = safeInspect(value);
	return data;
}

function limited(data, what) {
	const text = stringify(data);
	const bytes = Buffer.byteLength(text);
	return bytes > BUNDLE_MAX_BYTES ? { 'text/plain': `<${what} too large: ${bytes} bytes>` } : data;
}

// Everything printed before is in the pipes by now; the host has read it when it acks, and only then may
// more be printed.
function showBundle(data, options) {
	const { id = null, update = false, metadata = {} } = options || {};
	send({ type: 'display', data: limited(data, 'display'), metadata, display_id: id, update });
	const mine = ++acks.sent;
	control.waitFor(() => acks.got >= mine);
}

function display(value, options) {
	showBundle(bundle(value), options);
}

Object.assign(display, {
	html: (text, options) => showBundle({ 'text/html': String(text), 'text/plain': String(text) }, options),
	svg: (text, options) => showBundle({ 'image/svg+xml': String(text), 'text/plain': '<svg>' }, options),
	markdown: (text, options) => showBundle({ 'text/markdown': String(text), 'text/plain': String(text) }, options),
	png: (data, options) => showBundle({ 'image/png': base64(data), 'text/plain': '<png>' }, options),
	jpeg: (data, options) => showBundle({ 'image/jpeg': base64(data), 'text/plain': '<jpeg>' }, options),
	json: (value, options) => showBundle({ 'application/json': value, 'text/plain': safeInspect(value) }, options),
	text: (text, options) => showBundle({ 'text/plain': String(text) }, options),
	mime: (data, options) => showBundle(data, options),
	update: (id, value) => showBundle(bundle(value), { id, update: true }),
	clear: (wait = false) => send({ type: 'clear_output', wait: Boolean(wait) }),
});

let inputId = 0;

function input(prompt = '', { password = false } = {}) {
	return new Promise((resolve, reject) => {
		if (!current) throw new Error('input: no execution is running');
		inputs.set(++inputId, { resolve, reject });
		send({ type: 'input_request', id: inputId, prompt: String(prompt), password: Boolean(password) });
	});
}

// --- modules, from the working directory

// Where a package's entry for import is, when `require.resolve` does not know it (a package for import alone).
function entryForImport(specifier, directories) {
	const [, name, rest] = /^((?:@[^/]+\/)?[^/]+)(\/.*)?$/.exec(specifier) || [];
	const pick = (e) => (typeof e === 'string' ? e : e && (pick(e.import) || pick(e.node) || pick(e.default)));
	for (const directory of directories) {
		const home = path.join(directory, name || '');
		let pkg;
		try {
			pkg = parse(fs.readFileSync(path.join(home, 'package.json'), 'utf8'));
		} catch (e) {
			continue;
		}
		const e = pkg.exports;
		const map = e && typeof e === 'object' && Object.keys(e).some((k) => k[0] === '.') ? e : { '.': e || pkg.module || pkg.main || './index.js' };
		const found = pick(map[rest ? `.${rest}` : '.']) || (rest && !e ? `.${rest}` : null);
		if (found) return path.join(home, found);
	}
	return null;
}

const modules = {
	cwd: null,
	nativeImport: null,
	// Called before each execution: the code may have changed directory.
	refresh() {
		let cwd = '/';
		try {
			cwd = process.cwd();
		} catch (e) {
			// The directory is gone.
		}
		if (cwd === this.cwd) return;
		this.cwd = cwd;
		const file = path.join(cwd, '[kernel]');
		const require = createRequire(file);
		const module = new (require('module'))(file);
		module.filename = file;
		module.paths = require.resolve.paths('x') || [];
		require.main = module;
		for (const [name, value] of Object.entries({ require, module, exports: module.exports, __filename: file, __dirname: cwd })) {
			Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
		}
		this.require = require;
		this.meta = { url: url.pathToFileURL(file).href, filename: file, dirname: cwd };
		this.nativeImport = null;
		if (vm.constants && vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER) {
			this.nativeImport = vm.runInThisContext('(s, o) => (o === undefined ? import(s) : import(s, o))', {
				filename: file,
				importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
			});
		}
	},
	async import(specifier, options) {
		specifier = String(specifier);
		if (this.nativeImport) return quietly(() => this.nativeImport(specifier, options));
		if (/^\.{0,2}\//.test(specifier)) return import(url.pathToFileURL(path.resolve(this.cwd, specifier)).href);
		if (/^[a-z]+:/i.test(specifier) || builtinModules.includes(specifier)) return import(specifier);
		let file;
		try {
			file = this.require.resolve(specifier);
		} catch (e) {
			file = entryForImport(specifier, this.require.resolve.paths(specifier) || []);
			if (!file) throw e;
		}
		return import(url.pathToFileURL(file).href);
	},
};

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
	// Signals that came before: their marks are left by another thread, which may need a moment, the more so in a storm.
	if (now() - sigint.seenAt < STORM_MS) nap(STALE_MS);
	else if (now() - reportedAt < STALE_MS) nap();
	for (let i = 0; i < 20 && sigint.take(); i++) nap();
	watch(run);
	advance(run, call);
}

const isThenable = (v) => v !== null && (typeof v === 'object' || typeof v === 'function') && typeof v.then === 'function';

// One part of the code after the other, `call` first, for as long as what is awaited needs no event loop.
// The microtasks are run here, under the guard, because they are the code's and need not end. And many
// short parts have one guard: a signal at the end of a guard is lost. Gives {value}, or {waiting, resume}:
// go on with `resume` when `waiting` has its result.
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

// From one top-level await to the next: {value} at the end, else {generator, awaited}.
function part(generator, method, got) {
	const { done, value } = generator[method](got);
	return done ? { value } : { generator, awaited: value };
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

// settle(RUN, {value} | {error}): the end, once. What unhandled rejections have to say is said before the
// execution is reported.
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
			// A `finally` of the code's has failed: the execution is over all the same.
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
				const data = guard(() => limited(bundle(outcome.value), 'result'));
				send({ type: 'result', data, metadata: {} });
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
				// A command that SIGINT ended fails first, and the signal is seen only here.
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

// --- what the code finds

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

function complain(error, what) {
	if (error instanceof Exit || error === INTERRUPT) return;
	let text;
	try {
		text = describe(error).traceback.join('\n');
	} catch (e) {
		text = '<an error that cannot be shown>';
	}
	writeAll(2, Buffer.from(`${what}${text}\n`));
}

function hidden(object, name, value) {
	Object.defineProperty(object, name, { value, writable: true, configurable: true, enumerable: false });
}

function main() {
	for (const [name, fd] of [['stdout', 1], ['stderr', 2]]) {
		const stream = new TextStream(fd);
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
	control.open();
	send({ type: 'ready', language: 'javascript', version: process.versions.node, pid: process.pid });
	setImmediate(() => parseCode(''));
}

main();
