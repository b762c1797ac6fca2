// SPDX-License-Identifier: Apache-2.0
// display.js - `display` and the value of the last expression, as bundles of MIME types.
//
// Theory of operation. A bundle has the forms that the value itself offers (Symbol.for('Jupyter.display'), toHTML, toSVG,
// toMarkdown) and always text/plain. A bundle that is too large for a line is replaced by a text with this reason; then, or if
// its text was cut, the message has `truncated`. The order of
// text and bundles holds because `display` waits until the host has acknowledged it.
'use strict';

const { control, send } = require('./channel.js');
const { TEXT_MAX_CHARS, complain, safeInspect } = require('./errors.js');

const BUNDLE_MAX_BYTES = 8 << 20;

const { stringify } = JSON;

const base64 = (data) => (typeof data === 'string' ? data : Buffer.from(data).toString('base64'));

// { data, cut } of a value; cut: its text is not whole, and has a note at its end.
function bundle(value) {
	const data = {};
	let cut = false;
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
	if (data['text/plain'] === undefined) {
		data['text/plain'] = safeInspect(value);
		cut = data['text/plain'].length > TEXT_MAX_CHARS;
	}
	return { data, cut };
}

// The members `data` and, if something was left out, `truncated` of a message.
function limited({ data, cut = false }, what) {
	const bytes = Buffer.byteLength(stringify(data));
	if (bytes > BUNDLE_MAX_BYTES) return { data: { 'text/plain': `<${what} too large: ${bytes} bytes>` }, truncated: true };
	return cut ? { data, truncated: true } : { data };
}

const acks = { sent: 0, got: 0 };

function acknowledged() {
	acks.got = Math.min(acks.got + 1, acks.sent); // an ack that no display waits for is no credit
}

// Everything printed before is in the pipes by now; the host has read it when it acks, and only then may
// more be printed.
function showBundle(shown, options) {
	const { id = null, update = false, metadata = {} } = options || {};
	send({ type: 'display', ...limited(shown, 'display'), metadata, display_id: id, update });
	const mine = ++acks.sent;
	control.waitFor(() => acks.got >= mine);
}

function display(value, options) {
	showBundle(bundle(value), options);
}

const showMime = (data, options) => showBundle({ data }, options);

Object.assign(display, {
	html: (text, options) => showMime({ 'text/html': String(text), 'text/plain': String(text) }, options),
	svg: (text, options) => showMime({ 'image/svg+xml': String(text), 'text/plain': '<svg>' }, options),
	markdown: (text, options) => showMime({ 'text/markdown': String(text), 'text/plain': String(text) }, options),
	png: (data, options) => showMime({ 'image/png': base64(data), 'text/plain': '<png>' }, options),
	jpeg: (data, options) => showMime({ 'image/jpeg': base64(data), 'text/plain': '<jpeg>' }, options),
	json: (value, options) => showMime({ 'application/json': value, 'text/plain': safeInspect(value) }, options),
	text: (text, options) => showMime({ 'text/plain': String(text) }, options),
	mime: showMime,
	update: (id, value) => showBundle(bundle(value), { id, update: true }),
	clear: (wait = false) => send({ type: 'clear_output', wait: Boolean(wait) }),
});

module.exports = { acknowledged, bundle, display, limited };
