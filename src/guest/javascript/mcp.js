// SPDX-License-Identifier: Apache-2.0
// mcp.js - The agent's tools for javascript in a cell: `mcp`, in sandboxes that were created with servers.
//
//   await mcp.weather.get_weather({ city: 'Paris' })        await mcp.runtime.search_tool_docs('rain')
//
// Theory of operation. Requests go to the host as lines (docs/protocol/kernel.md, "Asking the host") and are answered in any
// order; everything is a promise, so many can wait at once. The tools of a server are requested at their first use, and kept.
// Arguments are checked against the tool's schema before the request. When an execution is over, calls that still wait are
// dropped here and cancelled by the host; an interrupt is reported to the host at once.
//
// Files, time, saved functions and help texts are in runtime.js, the check of arguments is in arguments.js.
//
// The driver loads this file when an execution first comes with servers (in a cell it is part of the driver's own file).
'use strict';

const fs = require('fs');
const path = require('path');
const { inspect } = require('util');

const { Check, isObject, list, nearest, words } = require('./arguments.js');
const { files, time, tools, toolHelp, serverHelp } = require('./runtime.js');

const RESULT_MAX = 64 << 20;
const TEXT_MAX = 8 << 20;
const LINE_MAX = 12 << 20; // quoted once more; the host accepts 16, and ends a kernel that sends more
const KEY_MAX = 100;
const WRITTEN = '.key'; // the member of the metadata with the key as it was written
const WRITTEN_MAX = 300;
const ATTEMPTS = 20;
const PATIENCE_MS = 30000;
const SIGNAL_MS = 1000;
const LOOK_MS = 10000; // how long code waits for tools that it only looks at
const PROJECTS = '/projects';

const { stringify, parse } = JSON;

// A call that failed: `code` is the kind of error; hint, server, tool and content have the details, if there are any.
class MCPError extends Error {
	constructor(message, { code = 'error', hint, server, tool, content } = {}) {
		super(hint ? `${message} (${hint})` : message);
		Object.assign(this, { code, hint, server, tool, content });
		Object.defineProperty(this, 'name', { value: 'MCPError', configurable: true, writable: true });
		for (const key of Object.keys(this)) if (this[key] === undefined) delete this[key];
	}
}

// --- results

function blob(data, mime, uri) {
	const made = Buffer.from(String(data), 'base64');
	made.mimeType = mime || 'application/octet-stream';
	if (uri) made.uri = uri;
	Object.defineProperty(made, Symbol.for('Jupyter.display'), {
		value: () => (/^image\/(png|jpeg|gif)$/.test(made.mimeType) ? { [made.mimeType]: made.toString('base64'), 'text/plain': `<${made.mimeType}, ${made.length} bytes>` } : {}),
	});
	return made;
}

function item(one) {
	if (!isObject(one)) return one;
	if (one.type === 'text') {
		try {
			return parse(one.text);
		} catch (e) {
			return String(one.text);
		}
	}
	if (one.type === 'image' || one.type === 'audio') return blob(one.data, one.mimeType);
	if (one.type === 'resource' && isObject(one.resource)) {
		const { blob: data, text, mimeType, uri } = one.resource;
		return data !== undefined ? blob(data, mimeType, uri) : String(text === undefined ? '' : text);
	}
	return one;
}

function unwrap(result, server, tool) {
	if (!isObject(result)) return result;
	const content = list(result.content);
	if (result.isError) {
		const text = content.filter((c) => isObject(c) && c.type === 'text').map((c) => c.text).join('\n').trim();
		throw new MCPError(`${server}.${tool.name}: ${text || 'the tool reported an error without a word'}`, { code: 'tool', server, tool: tool.name, content });
	}
	if (result.structuredContent !== undefined && result.structuredContent !== null) {
		const wrapped = isObject(tool.outputSchema) && tool.outputSchema['x-fastmcp-wrap-result'];
		return wrapped ? result.structuredContent.result : result.structuredContent;
	}
	const items = content.map(item);
	return items.length === 1 ? items[0] : items.length ? items : null;
}

// --- the host

function text(value, what) {
	let made;
	try {
		made = stringify(value, (key, v) => {
			if (typeof v === 'number' && !Number.isFinite(v)) throw new TypeError(`${v} at '${key}'`);
			return v instanceof Map ? Object.fromEntries(v) : v instanceof Set ? [...v] : v;
		});
	} catch (e) {
		throw new TypeError(`${what}: the value cannot be written as JSON: ${e.message}`);
	}
	if (made === undefined) throw new TypeError(`${what}: the value cannot be written as JSON: ${typeof value}`);
	if (made.length > TEXT_MAX) throw new MCPError(`${what}: ${made.length} characters of JSON, at most ${TEXT_MAX} are allowed`, { code: 'too_large' });
	return made;
}

module.exports = function codeMode(send) {
	const calls = new Map();
	let number = 0;
	let servers = [];
	let execution = 0;

	const request = (op, fields) =>
		new Promise((resolve, reject) => {
			const message = Object.assign({ type: 'rpc_request', id: ++number, op }, fields);
			const bytes = Buffer.byteLength(stringify(message));
			if (bytes > LINE_MAX) throw new MCPError(`${op}: a request of ${bytes} bytes, at most ${LINE_MAX} are allowed`, { code: 'too_large' });
			calls.set(number, { resolve, reject, parts: [], size: 0 });
			send(message);
		});

	// Wait: the host limits how much a sandbox saves and reads per second.
	async function note(op, fields) {
		for (const end = Date.now() + PATIENCE_MS; ; await new Promise((resolve) => setTimeout(resolve, 100))) {
			try {
				return await request(op, fields);
			} catch (e) {
				if (e.code !== 'rate' || Date.now() > end) throw e;
			}
		}
	}

	function receive(message) {
		const call = calls.get(message.id);
		if (!call) return;
		if (message.type === 'rpc_part') {
			call.size += String(message.text).length;
			if (call.size <= RESULT_MAX) {
				call.parts.push(String(message.text));
				return;
			}
			send({ type: 'rpc_cancel', id: message.id });
			message = { id: message.id, ok: false, error: { code: 'too_large', message: `the result has more than ${RESULT_MAX >> 20} MiB` } };
		}
		calls.delete(message.id);
		if (!message.ok) {
			const error = isObject(message.error) ? message.error : {};
			const thrown = new MCPError(String(error.message || 'the host refused the call'), { code: error.code, hint: error.hint });
			// The host cancels calls of code that it is about to interrupt: the signal will arrive, and takes precedence.
			if (error.code === 'cancelled') setTimeout(() => call.reject(thrown), SIGNAL_MS);
			else call.reject(thrown);
			return;
		}
		try {
			call.resolve(call.parts.length ? parse(call.parts.join('')) : message.result);
		} catch (e) {
			call.reject(new MCPError('the result is not JSON', { code: 'internal' }));
		}
	}

	// The execution is over: drop unanswered calls; `tell`: the host does not know yet.
	function end(tell) {
		if (tell) for (const id of calls.keys()) send({ type: 'rpc_cancel', id });
		calls.clear();
	}

	// --- servers and tools

	const aliasOf = (name) => {
		const alias = name.replace(/[^\w$]/g, '_') || '_';
		return /^\d/.test(alias) ? `_${alias}` : alias;
	};

	function find(name) {
		const server = servers.find((s) => s.name === name) || servers.find((s) => s.alias === name);
		if (server) return server;
		throw new MCPError(`this sandbox has no server '${name}'; it has: ${servers.map((s) => s.name).join(', ') || 'none'}`, {
			code: 'unknown_server', server: name, hint: 'name it in `servers` when the sandbox is created',
		});
	}

	async function toolsOf(server) {
		if (!server.tools) {
			const answer = await request('mcp.tools', { server: server.name });
			server.tools = list(answer && answer.tools).filter((t) => isObject(t) && typeof t.name === 'string');
			for (const tool of server.tools) tool.alias = aliasOf(tool.name);
			server.refused = list(answer && answer.refused);
			server.note = String((answer && answer.note) || '');
		}
		return server.tools;
	}

	async function toolOf(server, name) {
		for (let again = 0; ; again++) {
			const tools = await toolsOf(server);
			const tool = tools.find((t) => t.name === name) || tools.find((t) => t.alias === name);
			if (tool) return tool;
			// The host's refusal names the rule, and the host records the attempt.
			if (server.refused.includes(name)) return { name, alias: aliasOf(name), inputSchema: {} };
			if (again) {
				const near = nearest(name, tools.map((t) => t.alias));
				throw new MCPError(`${server.name} has no tool '${name}'${near ? `, did you mean '${near}'?` : ''}; it has: ${tools.map((t) => t.alias).sort().slice(0, 40).join(', ') || 'none'}${server.note ? `; ${server.note}` : ''}`, {
					code: 'unknown_tool', server: server.name, tool: name,
				});
			}
			server.tools = null; // servers change their lists
		}
	}

	async function call(server, name, given = {}, { timeout, raw = false } = {}) {
		const tool = await toolOf(server, name);
		const what = `${server.name}.${tool.name}`;
		if (!isObject(given)) throw new TypeError(`${what}: arguments must be an object: ${tool.alias}({name: value})`);
		const fields = { server: server.name, tool: tool.name, arguments: text(given, `${what}: arguments`) };
		const check = new Check(isObject(tool.inputSchema) ? tool.inputSchema : {});
		check.look('', parse(fields.arguments), tool.inputSchema);
		if (check.problems.length) throw new MCPError(`${what}: ${check.problems.join('; ')}`, { code: 'arguments', server: server.name, tool: tool.name });
		if (timeout !== undefined) fields.timeout_ms = Math.max(1, Math.round(timeout * 1000));
		let answer;
		try {
			answer = await request('mcp.call', fields);
		} catch (e) {
			throw new MCPError(`${what}: ${e.message}`, { code: e.code, server: server.name, tool: tool.name });
		}
		return raw ? answer : unwrap(answer, server.name, tool);
	}

	// Names that the language or a console looks up in any object; they do not stand for tools.
	const own = (name) => typeof name === 'string' && !['then', 'toJSON', 'constructor', 'prototype', 'inspect', 'valueOf', 'toString'].includes(name);

	const said = (object, text) => {
		for (const key of ['toString', inspect.custom]) Object.defineProperty(object, key, { value: text, configurable: true, writable: true });
		return object;
	};
	const known = (server, name) => list(server.tools).find((t) => t.name === name) || list(server.tools).find((t) => t.alias === name);

	// A tool: a function, and its documentation.
	function functionOf(server, name) {
		const help = () => (known(server, name) ? toolHelp(server, known(server, name)) : `mcp.${server.alias}.${name}: ${serverHelp(server, server.problem)}`);
		const made = said((given, options) => call(server, name, given, options), help);
		Object.defineProperty(made, 'name', { value: name, configurable: true });
		return Object.defineProperty(made, 'help', { get: help, configurable: true });
	}

	function proxyOf(server) {
		const made = new Map();
		const get = (name) => {
			if (!made.has(name)) made.set(name, functionOf(server, name));
			return made.get(name);
		};
		const text = () => serverHelp(server, server.problem);
		// A console shows the target of the proxy.
		return new Proxy(said(Object.create(null), text), {
			get: (_, name) => {
				if (name === 'toString' || name === inspect.custom) return text;
				if (!own(name)) return undefined;
				return name === 'list_tools' ? () => runtime.list_tools(server.name) : get(name);
			},
			has: (_, name) => name === 'list_tools' || Boolean(known(server, name)),
			ownKeys: () => [...new Set(list(server.tools).map((t) => t.alias))],
			getOwnPropertyDescriptor: (_, name) => (known(server, name) ? { value: get(name), enumerable: true, configurable: true, writable: true } : undefined),
		});
	}

	// --- mcp.runtime

	const detailOf = (options) => {
		const detail = (typeof options === 'string' ? options : options && options.detail) || 'summary';
		if (detail !== 'summary' && detail !== 'full') throw new TypeError(`detail must be 'summary' or 'full', not '${detail}'`);
		return detail;
	};

	function documentOf(server, tool, detail) {
		const doc = { server: server.name, serverAlias: server.alias, tool: tool.name, toolAlias: tool.alias };
		if (tool.description) doc.description = tool.description;
		if (detail === 'full') for (const key of ['inputSchema', 'outputSchema', 'annotations']) if (tool[key]) doc[key] = tool[key];
		return doc;
	}

	const keyOf = (key) => {
		const made = String(key).trim().replace(/[^A-Za-z0-9_-]/gu, '_').slice(0, KEY_MAX);
		if (!made) throw new TypeError('a memory key cannot be empty');
		return made;
	};
	// The user's metadata, and the key as it was written, if that differs.
	const metadataOf = (entry) => {
		const { [WRITTEN]: written, ...metadata } = parse(entry.metadata || '{}');
		if (typeof written === 'string' && keyOf(written || '_') === entry.key) return { metadata, key: written };
		return { metadata: parse(entry.metadata || '{}'), key: entry.key };
	};
	const info = (entry) => ({
		...metadataOf(entry),
		created_at: new Date(entry.created_at).toISOString(),
		updated_at: new Date(entry.updated_at).toISOString(),
	});
	const load = async (key) => {
		const entry = await note('memory.load', { key: keyOf(key) });
		return entry && entry.found !== false ? entry : null;
	};

	// A file below /projects, a view for other programs. Best effort.
	function view(key, content) {
		const file = path.join(PROJECTS, 'memory', `${key}.json`);
		try {
			if (content === null) return fs.unlinkSync(file);
			fs.mkdirSync(path.dirname(file), { recursive: true });
			fs.writeFileSync(`${file}.new`, stringify(content, null, 2));
			fs.renameSync(`${file}.new`, file);
		} catch (e) {
			// An image without the directory has no view.
		}
	}

	async function save(key, value, metadata, more) {
		if (metadata !== undefined && !isObject(metadata)) throw new TypeError('metadata must be an object');
		const [kept, written] = [keyOf(key), String(key)];
		const noted = { ...metadata, ...(written !== kept && [...written].length <= WRITTEN_MAX ? { [WRITTEN]: written } : {}) };
		const entry = await note('memory.save', Object.assign(
			{ key: kept, value: text(value, `memory '${key}'`), metadata: text(noted, `memory '${key}': metadata`) }, more));
		view(kept, Object.assign(info(Object.assign({ metadata: '{}' }, entry)), { key: written, value, metadata: metadata || {} }));
	}

	const { load: loadTools, ...saved } = tools(note, MCPError);
	let toolsLoaded = false;

	const runtime = {
		MCPError,
		call_tool: async (server, tool, given, options) => call(find(server), tool, given, options),
		discovered_servers: async (detailed = false) => {
			const known = list((await request('mcp.servers')).servers);
			return known.map((s) => (detailed === true || (detailed && detailed.detailed) ? { name: s.name, description: s.description || '' } : s.name));
		},
		list_servers: async () => servers.map((s) => s.name),
		list_tools: async (name) => {
			const server = find(name);
			const tools = await toolsOf(server);
			if (server.note && server.note !== server.noted) console.error(server.note); // that the rules leave some out, once
			server.noted = server.note;
			return tools.map((t) => ({ name: t.name, alias: t.alias, description: t.description || '', input_schema: t.inputSchema }));
		},
		describe_server: async (name) => {
			const server = find(name);
			return { name: server.name, alias: server.alias, description: server.description, tools: await runtime.list_tools(name) };
		},
		list_loaded_server_metadata: async () => Promise.all(servers.map((s) => runtime.describe_server(s.name))),
		query_tool_docs: async (server, tool, options) => {
			if (isObject(tool)) [tool, options] = [undefined, tool];
			const [detail, found] = [detailOf(options), find(server)];
			if (tool !== undefined && tool !== null) return documentOf(found, await toolOf(found, tool), detail);
			return (await toolsOf(found)).map((t) => documentOf(found, t, detail));
		},
		search_tool_docs: async (query, { limit = 5, detail = 'summary' } = {}) => {
			const fields = { query: String(query), limit: Math.max(1, Math.min(20, Math.trunc(limit) || 1)), detail: detailOf(detail) };
			return list((await request('mcp.search', fields)).results).map(({ server, alias, tool, ...rest }) =>
				({ server, serverAlias: alias, tool, toolAlias: aliasOf(String(tool)), ...rest }));
		},
		capability_summary: () => [
			'Servers of this sandbox:', ...(servers.length ? servers.map((s) => `  mcp.${s.alias}${s.description ? `: ${s.description}` : ''}`) : ['  none']),
			'Call: await mcp.<alias>.<tool>({name: value}), several at once with Promise.all()',
			"Find: Object.keys(mcp.<alias>), mcp.<alias>.<tool>.help, await mcp.<alias>.list_tools(), await mcp.runtime.search_tool_docs('words'), await mcp.runtime.query_tool_docs(server, tool, {detail: 'full'})",
			'Keep: await mcp.runtime.save_memory(key, value), load_memory(key), list_memories(), save_tool(function)',
			'Files: await mcp.runtime.save_file(name, content), save_image(name, bytes), list_execution_files()',
			'Only what is printed, shown or the last expression leaves the sandbox. Failures throw MCPError.',
		].join('\n'),
		save_memory: async (key, value, { metadata } = {}) => {
			await save(key, value, metadata);
			return `Memory '${key}' saved.`;
		},
		load_memory: async (key, options = {}) => {
			const entry = await load(key);
			return entry ? parse(entry.value) : options.default === undefined ? null : options.default;
		},
		delete_memory: async (key) => {
			const { deleted } = await note('memory.delete', { key: keyOf(key) });
			view(keyOf(key), null);
			return `Memory '${key}' ${deleted ? 'deleted' : 'not found'}.`;
		},
		list_memories: async () => list((await note('memory.list')).memories).map(info),
		update_memory: async (key, updater) => {
			for (let i = 0; i < ATTEMPTS; i++) {
				const entry = await load(key);
				const value = await updater(entry ? parse(entry.value) : null);
				try {
					await save(key, value, entry ? metadataOf(entry).metadata : undefined, { revision: entry ? entry.revision : 0 });
					return value;
				} catch (e) {
					if (e.code !== 'conflict') throw e;
				}
			}
			throw new MCPError(`memory '${key}' is changed by others all the time`, { code: 'conflict' });
		},
		memory_exists: async (key) => (await load(key)) !== null,
		get_memory_info: async (key) => {
			const entry = await load(key);
			return entry && Object.assign(info(entry), { value: parse(entry.value) });
		},
		...files(() => execution),
		...time,
		...saved,
		get LOADED_MCP_SERVERS() {
			return servers.map((s) => s.name);
		},
	};

	// --- the name `mcp`

	const proxies = new Map();
	const mcp = new Proxy({ runtime, MCPError }, {
		get: (fixed, name) => {
			if (!own(name) || name in fixed) return fixed[name];
			if (name === 'servers') return Object.fromEntries(servers.map((s) => [s.name, proxies.get(s)]));
			return proxies.get(find(name));
		},
		ownKeys: (fixed) => [...new Set([...Reflect.ownKeys(fixed), ...servers.map((s) => s.alias)])],
		getOwnPropertyDescriptor: (fixed, name) =>
			Reflect.getOwnPropertyDescriptor(fixed, name) || { value: proxies.get(servers.find((s) => s.alias === name)), enumerable: true, configurable: true },
	});

	// Servers that code names without calling one of their tools: the code shows them, and cannot await their tools.
	const lookedAt = (code) => servers.filter((s) => !s.tools && (
		new RegExp(`\\bmcp\\s*\\.\\s*${s.alias.replace(/\$/g, '\\$&')}(?![\\w$])(?!\\s*\\.\\s*[\\w$]+\\s*\\()`).test(code) ||
		(/\bmcp\s*\.\s*servers\b/.test(code) && code.includes(s.name))));

	async function lookUp(server) {
		let timer;
		try {
			const late = new Promise((resolve, reject) => {
				timer = setTimeout(() => reject(new Error('the server takes its time')), LOOK_MS);
			});
			await Promise.race([toolsOf(server), late]);
			server.problem = undefined;
		} catch (e) {
			server.problem = e.message; // a call of one of its tools reports it again
		}
		clearTimeout(timer);
	}

	// Before each execution, with the host's list: known tools of a server that stays are kept. Returns a promise if the code must
	// wait: for the owner's saved functions, the first time, and for the tools of servers that it shows.
	function enter(given, name, code) {
		execution = Number((/\d+/.exec(name) || [execution + 1])[0]);
		servers = list(given.servers).filter((s) => isObject(s) && s.name).map((s) => {
			const old = servers.find((o) => o.name === s.name && o.alias === s.alias);
			return old || { name: s.name, alias: s.alias || aliasOf(s.name), description: s.description || '', tools: null };
		});
		for (const server of [...proxies.keys()]) if (!servers.includes(server)) proxies.delete(server);
		for (const server of servers) if (!proxies.has(server)) proxies.set(server, proxyOf(server));
		const work = lookedAt(code).map(lookUp);
		if (given.saved_tools && !toolsLoaded) work.push(loadTools((text) => console.error(text)));
		toolsLoaded = true;
		return work.length ? Promise.all(work) : null;
	}

	const names = { mcp: { value: mcp, writable: true }, MCPError: { value: MCPError, writable: true }, LOADED_MCP_SERVERS: { get: () => runtime.LOADED_MCP_SERVERS, set: (value) => Object.defineProperty(globalThis, 'LOADED_MCP_SERVERS', { value, writable: true }) } };
	for (const key of Object.keys(names)) {
		if (!(key in globalThis)) Object.defineProperty(globalThis, key, { configurable: true, enumerable: false, ...names[key] });
	}
	return { enter, receive, end };
};
