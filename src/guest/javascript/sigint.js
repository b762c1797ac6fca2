// SPDX-License-Identifier: Apache-2.0
// sigint.js - SIGINT ends the code that runs, and never the javascript kernel.
//
// Theory of operation. node's own watchdog thread (which `breakOnSigint` starts) is started once and never stopped, so
// the signal never has its deadly default. During `guard` the signal terminates the running javascript; otherwise it
// leaves a mark, which is polled while an execution waits and cleared when one starts.
// Not interruptible: a loop without end in a callback, or after an await inside a function. Lost: a signal in
// the microsecond in which a guard ends, because node then wipes the mark. The host's next step is to kill.
'use strict';

const vm = require('vm');
const { executionAsyncId } = require('async_hooks');

const now = Date.now;

const INTERRUPT = { toString: () => 'interrupted' };

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
		// registered, but receives nothing.
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
	// The same, and clears the mark: one more start and stop does that, while the first start stays in force.
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

// f(), without node's warnings about experimental or deprecated functions.
function quietly(f) {
	const { emitWarning } = process;
	process.emitWarning = () => {};
	try {
		return f();
	} finally {
		process.emitWarning = emitWarning;
	}
}

// Terminated code has not left the asynchronous contexts that it had entered, and node ends the process when it finds
// that.
function leaveAsyncContexts(context) {
	try {
		const { popAsyncContext } = quietly(() => process.binding('async_wrap'));
		for (let i = 0; i < 1000 && executionAsyncId() !== context; i++) popAsyncContext(executionAsyncId());
	} catch (e) {
		// Not available: continue anyway.
	}
}

// guard(f): f(), ended by SIGINT. Throws the exceptions of f, or INTERRUPT. An inner guard has no effect of its own.
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

module.exports = { GUARD, INTERRUPT, guard, guardCall, quietly, sigint };
