// SPDX-License-Identifier: Apache-2.0
// errors.js - Values and errors of the code as text, as node shows them, without the frames of the kernel itself.
//
// Theory of operation. Showing a value runs the code's own functions (getters, inspect.custom), which may fail or not end:
// it is guarded, and an interrupt during it interrupts the execution. The lines of recent executions are kept, so that a
// traceback begins with the line that failed.
'use strict';

const util = require('util');

const { writeAll } = require('./channel.js');
const { INTERRUPT, guard } = require('./sigint.js');

const TEXT_MAX_CHARS = 1 << 20;
const SOURCES_MAX = 200;

const inspect = util.inspect;

// The object that process.exit(n) throws: it ends an execution and is not an error.
class Exit {
	constructor(code) {
		Object.defineProperty(this, 'code', { value: code });
	}
	[inspect.custom]() {
		return `process.exit(${this.code})`;
	}
}

const sources = new Map();

function remember(name, code) {
	sources.set(name, code.split('\n'));
	if (sources.size > SOURCES_MAX) sources.delete(sources.keys().next().value);
}

let driverFrame = null;

// hideFrames(FILES): the driver's own files, which no traceback shows.
function hideFrames(files) {
	const own = files.map((file) => file.replace(/[^\w]/g, '\\$&')).join('|');
	driverFrame = new RegExp(
		`^\\s+at .*(${own}|\\bRunningScript\\b|Script\\.runInThisContext|Script\\.runInContext|` +
			`[( ]vm\\.js:|node:vm:|internal/vm|(Generator|Object)?\\.?next \\(<anonymous>\\)|new Script \\(|\\bprocessImmediate)`
	);
}

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

// Removes the driver's frames from an error and from its causes, permanently.
function trim(error, depth) {
	if (!error || typeof error !== 'object' || depth > 8) return;
	try {
		const own = Object.getOwnPropertyDescriptor(error, 'stack');
		if (own && typeof error.stack === 'string') {
			error.stack = error.stack.split('\n').filter((line) => !driverFrame.test(line)).join('\n');
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
		// A getter of the code failed: use the text alone.
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

// Unhandled errors are written, and end nothing.
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

module.exports = { Exit, TEXT_MAX_CHARS, complain, describe, hideFrames, remember, safeInspect };
