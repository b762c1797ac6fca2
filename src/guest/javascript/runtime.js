// SPDX-License-Identifier: Apache-2.0
// runtime.js - The parts of mcp.runtime that need no server: files of an execution, time, saved functions; and the text of help.
//
// Theory of operation. mcp.js puts these functions into `mcp.runtime`, and passes in the functions for requests and errors. Names and
// results are those of python's mcp.runtime (src/guest/python/caisson_kernel/codemode), options are objects. Functions that javascript
// cannot offer exist too, and raise an error with the reason. A saved function is its source, with a first line that names its language:
// the host keeps python's in the same place, and each language defines only its own.
'use strict';

const fs = require('fs');
const path = require('path');
const util = require('util');
const vm = require('vm');

const BASE = '/workspace/executions';
const OURS = '// javascript\n';
const EXTENSIONS = { jpg: 'image/jpeg', jpeg: 'image/jpeg', webp: 'image/webp' };

const isObject = (v) => v !== null && typeof v === 'object' && !Array.isArray(v);
const line = (text) => String(text || '').split(/\s+/).join(' ').trim();

// --- documentation

const kindsOf = (part) => [part.type, ...[].concat(part.anyOf || [], part.oneOf || []).map((one) => isObject(one) && one.type)].flat()
	.filter((kind) => typeof kind === 'string');

function describeArgument(name, part, required) {
	const said = [];
	if (isObject(part)) {
		const kinds = [...new Set(kindsOf(part))];
		if (kinds.length) said.push(kinds.join(' or '));
		if (Array.isArray(part.enum)) said.push(`one of ${part.enum.slice(0, 20).map((v) => JSON.stringify(v)).join(', ')}`);
		for (const key of ['minimum', 'maximum', 'minLength', 'maxLength', 'pattern', 'format']) if (key in part) said.push(`${key} ${part[key]}`);
		if ('default' in part) said.push(`default ${JSON.stringify(part.default)}`);
	}
	if (!required) said.push('optional');
	const note = isObject(part) && line(part.description);
	return `    ${name}${said.length ? ` (${said.join(', ')})` : ''}${note ? `: ${note}` : ''}`;
}

function argumentsOf(tool) {
	const schema = isObject(tool.inputSchema) ? tool.inputSchema : {};
	const required = Array.isArray(schema.required) ? schema.required : [];
	return Object.entries(isObject(schema.properties) ? schema.properties : {}).map(([name, part]) => ({ name, part, required: required.includes(name) }))
		.sort((a, b) => b.required - a.required);
}

const signature = (tool) => {
	const names = argumentsOf(tool).map(({ name, required }) => name + (required ? '' : '?'));
	return `${tool.alias}(${names.length ? `{ ${names.join(', ')} }` : ''})`;
};

// The text of python's help(mcp_weather.get_weather).
function toolHelp(server, tool) {
	const given = argumentsOf(tool);
	const lines = [`mcp.${server.alias}.${signature(tool)}`, '', String(tool.description || tool.title || `A tool of ${server.name}.`).trim()];
	if (given.length) lines.push('', 'Arguments:', ...given.map(({ name, part, required }) => describeArgument(name, part, required)));
	const notes = isObject(tool.annotations) ? tool.annotations : {};
	const said = [['readOnlyHint', 'changes nothing'], ['destructiveHint', 'may destroy something'], ['idempotentHint', 'may be repeated'],
		['openWorldHint', 'reaches beyond the server']].filter(([key]) => notes[key] === true).map(([, text]) => text);
	if (said.length) lines.push('', `According to the server, it ${said.join(', ')}.`);
	lines.push('', `A tool of the MCP server '${server.name}': await it.`);
	return lines.join('\n');
}

// A server and its tools, one line each. `problem`: why the tools are not available.
function serverHelp(server, problem) {
	const lines = [`MCP server ${server.name}${server.description ? `: ${line(server.description).slice(0, 200)}` : ''}`];
	if (!server.tools) lines.push(`  the list of its tools is not available yet: ${problem || `await mcp.${server.alias}.list_tools()`}`);
	for (const tool of server.tools || []) {
		const note = line(tool.description || tool.title);
		lines.push(`  ${signature(tool)}${note ? `: ${note.slice(0, 120)}` : ''}`);
	}
	if (server.tools && server.note) lines.push(`  ${server.note}`);
	return lines.join('\n');
}

// --- files

function files(number) {
	const folder = () => path.join(BASE, String(number()).padStart(3, '0'));

	const target = (name, subdir) => {
		const parts = `${subdir}/${name}`.split('/');
		if (!String(name) || String(name).startsWith('/') || String(subdir).startsWith('/') || parts.includes('..')) {
			throw new TypeError(`'${name}': a file's name, without .. and not absolute`);
		}
		const file = path.join(folder(), String(subdir), String(name));
		fs.mkdirSync(path.dirname(file), { recursive: true });
		return file;
	};
	const write = (file, content) => {
		const fresh = path.join(path.dirname(file), `.${path.basename(file)}.new`);
		fs.writeFileSync(fresh, content);
		fs.renameSync(fresh, file);
		return file;
	};
	const isBytes = (v) => v instanceof ArrayBuffer || ArrayBuffer.isView(v);

	return {
		execution_folder: folder,
		save_file: async (name, content, { subdir = 'data' } = {}) => {
			if (typeof content !== 'string' && !isBytes(content)) throw new TypeError(`content must be a string or bytes, not ${content === null ? 'null' : typeof content}`);
			return write(target(name, subdir), content instanceof ArrayBuffer ? Buffer.from(content) : content);
		},
		// Bytes, a data: URL, or an object with toBuffer(), such as a canvas.
		save_image: async (name, image, { format } = {}) => {
			const kind = String(format || path.extname(String(name)).slice(1) || 'png').toLowerCase();
			let data = image;
			if (typeof image === 'string' && /^data:[^,]*;base64,/.test(image)) data = Buffer.from(image.slice(image.indexOf(',') + 1), 'base64');
			else if (isObject(image) && typeof image.toBuffer === 'function') data = await image.toBuffer(EXTENSIONS[kind] || `image/${kind}`);
			if (data instanceof ArrayBuffer) data = Buffer.from(data);
			if (!isBytes(data)) throw new TypeError(`save_image takes bytes, a data: URL or an object with toBuffer(), not ${image === null ? 'null' : typeof image}`);
			return write(target(path.extname(String(name)) ? name : `${name}.${kind}`, 'images'), data);
		},
		list_execution_files: async () => {
			const found = { images: [], data: [], other: [] };
			const walk = (parts) => {
				let entries = [];
				try {
					entries = fs.readdirSync(path.join(folder(), ...parts), { withFileTypes: true });
				} catch (e) {
					return; // nothing was saved
				}
				for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
					const all = [...parts, entry.name];
					if (entry.isDirectory()) walk(all);
					else if (entry.isFile() && all.length > 1 && (all[0] === 'images' || all[0] === 'data')) found[all[0]].push(all.slice(1).join('/'));
					else if (entry.isFile()) found.other.push(all.join('/'));
				}
			};
			walk([]);
			return found;
		},
	};
}

// --- time

// A time with its zone: a Date that is printed, and written as JSON, in the time of that zone.
class ZonedDate extends Date {
	constructor(moment, timezone) {
		super(moment);
		Object.defineProperty(this, 'timezone', { value: timezone });
	}
	toISOString() {
		const parts = {};
		const format = new Intl.DateTimeFormat('en-US', {
			timeZone: this.timezone, hourCycle: 'h23', year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit',
		});
		for (const { type, value } of format.formatToParts(this)) parts[type] = value;
		const clock = `${parts.year.padStart(4, '0')}-${parts.month}-${parts.day}T${parts.hour}:${parts.minute}:${parts.second}`;
		const minutes = Math.round((Date.parse(`${clock}Z`) - Math.floor(this.getTime() / 1000) * 1000) / 60000);
		const two = (n) => String(n).padStart(2, '0');
		const offset = `${minutes < 0 ? '-' : '+'}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
		return `${clock}.${String(((this.getTime() % 1000) + 1000) % 1000).padStart(3, '0')}${offset}`;
	}
	toString() {
		return this.toISOString();
	}
	toJSON() {
		return this.toISOString();
	}
	[util.inspect.custom]() {
		return `${this.toISOString()} (${this.timezone})`;
	}
}

function zoneOf(name) {
	try {
		return new Intl.DateTimeFormat('en-US', { timeZone: String(name) }).resolvedOptions().timeZone && String(name);
	} catch (e) {
		throw new TypeError(`unknown time zone '${name}'; list_timezones() has their names`);
	}
}

// A Date, milliseconds, or ISO text; text without a zone is UTC.
function momentOf(given) {
	let moment = given;
	if (typeof given === 'string') {
		const text = given.trim().replace(/^(\d{4}-\d\d-\d\d) /, '$1T');
		moment = Date.parse(/^\d{4}-\d\d-\d\dT.*\d$/.test(text) && !/[+-]\d\d:?\d\d$/.test(text) ? `${text}Z` : text);
	} else if (given instanceof Date) {
		moment = given.getTime();
	}
	if (typeof moment === 'number' && Number.isFinite(moment)) return moment;
	throw new TypeError(`convert_time takes a Date, milliseconds or ISO text such as '2026-01-31T12:00:00Z', not ${util.inspect(given)}`);
}

const time = {
	now: (timezone = 'UTC') => new ZonedDate(Date.now(), zoneOf(timezone)),
	convert_time: (dt, to_tz) => new ZonedDate(momentOf(dt), zoneOf(to_tz)),
	list_timezones: (region) => {
		if (!Intl.supportedValuesOf) throw new Error('this node does not know the names of time zones; 18 does');
		return [...new Set(['UTC', ...Intl.supportedValuesOf('timeZone')])].filter((name) => !region || name.startsWith(region)).sort();
	},
};

// --- saved functions

const isOurs = (tool) => String(tool.source).startsWith(OURS);

function sourceOf(func) {
	const name = typeof func === 'function' ? func.name : '';
	if (!/^[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*$/u.test(name)) throw new TypeError('save_tool expects a function with a name of letters, digits and _');
	const source = Function.prototype.toString.call(func);
	try {
		new vm.Script(`(${source})`);
	} catch (e) {
		throw new TypeError(`save_tool: the source of ${name} is not a function by itself; write it as 'function ${name}(...) {...}' or as an arrow function`);
	}
	return source;
}

function tools(note, MCPError) {
	const listed = async () => (((await note('tool.list')) || {}).tools || []).filter(isObject);
	const stamp = (ms) => (typeof ms === 'number' ? new Date(ms).toISOString() : null);

	return {
		save_tool: async (func) => {
			await note('tool.save', { name: func && func.name, source: OURS + sourceOf(func) });
			if (!(func.name in globalThis)) globalThis[func.name] = func; // it may be another function's own
			return `Tool '${func.name}' saved. It is available in this sandbox and in future ones, in javascript. What it uses from outside of itself must be there then too.`;
		},
		delete_tool: async (name) => {
			const wanted = typeof name === 'function' ? name.name : String(name);
			const { deleted } = await note('tool.delete', { name: wanted });
			return `Tool '${wanted}' ${deleted ? 'deleted' : 'not found'}.`;
		},
		list_saved_tools: async () => (await listed()).map((tool) => ({
			name: tool.name, language: isOurs(tool) ? 'javascript' : 'python', source: isOurs(tool) ? tool.source.slice(OURS.length) : tool.source,
			created_at: stamp(tool.created_at), updated_at: stamp(tool.updated_at),
		})),
		// A function that fails is reported, and the others are still defined.
		load: async (report) => {
			let all = [];
			try {
				all = (await listed()).filter(isOurs);
			} catch (e) {
				report(`saved tools could not be loaded: ${e.message}`);
			}
			for (const { name, source } of all) {
				try {
					globalThis[name] = vm.runInThisContext(`(${source.slice(OURS.length)})`, { filename: `/projects/tools/${name}.js` });
				} catch (e) {
					report(`saved tool '${name}' was not loaded: ${e.message}`);
				}
			}
		},
		render_chart: async () => {
			throw new MCPError('render_chart draws with matplotlib, which is python\'s', {
				code: 'unavailable', hint: 'call it from python in this sandbox, or make an SVG and save it: save_file(\'chart.svg\', text, {subdir: \'images\'})',
			});
		},
	};
}

module.exports = { files, time, tools, toolHelp, serverHelp };
