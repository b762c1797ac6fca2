// SPDX-License-Identifier: Apache-2.0
// arguments.js - Whether the arguments of a call fit the schema of its tool, and what is wrong with them.
//
// A pattern in a dialect that node does not have passes: the server checks the arguments too.
'use strict';

const { stringify } = JSON;

const DEPTH_MAX = 40;
const PROBLEMS_MAX = 5;

const isObject = (v) => v !== null && typeof v === 'object' && !Array.isArray(v);
const list = (v) => (Array.isArray(v) ? v : []);
const words = (v) => (typeof v === 'string' ? [v] : list(v).filter((w) => typeof w === 'string'));
const oneOf = (names) => (names.length === 1 ? names[0] : `one of ${[...new Set(names)].join(', ')}`);
const show = (v) => {
	const text = stringify(v) || String(v);
	return text.length <= 60 ? text : `${text.slice(0, 60)}...`;
};

function typeOf(v) {
	if (v === null) return 'null';
	if (Array.isArray(v)) return 'array';
	if (typeof v === 'number') return Number.isInteger(v) ? 'integer' : 'number';
	return typeof v;
}

const fitsType = (v, kind) => typeOf(v) === kind || (kind === 'number' && typeof v === 'number');

// The most similar one of `names`, if there is one.
function nearest(asked, names) {
	let best = null;
	let least = Math.max(1, Math.floor(asked.length / 3)) + 1;
	for (const name of names) {
		let row = [...Array(name.length + 1).keys()];
		for (let i = 1; i <= asked.length; i++) {
			const next = [i];
			for (let j = 1; j <= name.length; j++) {
				next[j] = Math.min(next[j - 1] + 1, row[j] + 1, row[j - 1] + (asked[i - 1] !== name[j - 1]));
			}
			row = next;
		}
		if (row[name.length] < least) [best, least] = [name, row[name.length]];
	}
	return best;
}

function matches(pattern, text) {
	try {
		return new RegExp(pattern, 'u').test(text);
	} catch (e) {
		return true; // another dialect: the server checks it
	}
}

class Check {
	constructor(root) {
		this.root = root;
		this.problems = [];
	}
	say(where, text, schema) {
		const note = isObject(schema) && typeof schema.description === 'string' ? ` (${schema.description.split(/\s+/).join(' ').slice(0, 200)})` : '';
		if (this.problems.length < PROBLEMS_MAX) this.problems.push(`${where} ${text}${note}`);
	}
	follow(schema) {
		for (let i = 0; i < DEPTH_MAX && isObject(schema) && typeof schema.$ref === 'string' && schema.$ref[0] === '#'; i++) {
			let target = this.root;
			for (const word of schema.$ref.split('/').slice(1)) {
				target = isObject(target) ? target[word.replace(/~1/g, '/').replace(/~0/g, '~')] : undefined;
			}
			schema = target;
		}
		return schema;
	}
	fits(value, schema, depth) {
		const other = new Check(this.root);
		other.look('', value, schema, depth);
		return other.problems.length === 0;
	}
	look(where, value, schema, depth = 0) {
		schema = this.follow(schema);
		if (schema === false) this.say(where, 'is not allowed');
		if (!isObject(schema) || depth > DEPTH_MAX) return;
		const kinds = words(schema.type);
		if (kinds.length && !kinds.some((kind) => fitsType(value, kind))) {
			this.say(where, `must be ${oneOf(kinds)}, not ${typeOf(value)}: ${show(value)}`, schema);
			return;
		}
		const allowed = 'const' in schema ? [schema.const] : schema.enum;
		if (Array.isArray(allowed) && !allowed.some((a) => stringify(a) === stringify(value))) {
			const near = nearest(String(value), words(allowed));
			this.say(where, `must be ${oneOf(allowed.slice(0, 30).map(show))}, not ${show(value)}${near ? `; did you mean ${show(near)}?` : ''}`, schema);
			return;
		}
		this.bounds(where, value, schema);
		if (isObject(value)) this.members(where, value, schema, depth);
		else if (Array.isArray(value)) this.items(where, value, schema, depth);
		this.combined(where, value, schema, depth);
	}
	bounds(where, value, schema) {
		const size = (n, least, most, noun) => {
			if (n < schema[least]) this.say(where, `must have at least ${schema[least]} ${noun}, not ${n}`, schema);
			if (n > schema[most]) this.say(where, `must have at most ${schema[most]} ${noun}, not ${n}`, schema);
		};
		if (typeof value === 'string') {
			size([...value].length, 'minLength', 'maxLength', 'characters');
			if (typeof schema.pattern === 'string' && !matches(schema.pattern, value)) {
				this.say(where, `must match the pattern ${schema.pattern}, not ${show(value)}`, schema);
			}
		} else if (typeof value === 'number') {
			for (const [key, bad, text] of [['minimum', value < schema.minimum, 'at least'], ['maximum', value > schema.maximum, 'at most'],
				['exclusiveMinimum', value <= schema.exclusiveMinimum, 'more than'], ['exclusiveMaximum', value >= schema.exclusiveMaximum, 'less than']]) {
				if (bad) this.say(where, `must be ${text} ${schema[key]}, not ${value}`, schema);
			}
			const step = schema.multipleOf;
			if (step > 0 && Math.abs(value / step - Math.round(value / step)) > 1e-9) this.say(where, `must be a multiple of ${step}, not ${value}`, schema);
		} else if (Array.isArray(value)) {
			size(value.length, 'minItems', 'maxItems', 'items');
			if (schema.uniqueItems === true && new Set(value.map((v) => stringify(v))).size < value.length) this.say(where, 'must not have the same item twice', schema);
		} else if (isObject(value)) {
			size(Object.keys(value).length, 'minProperties', 'maxProperties', 'properties');
		}
	}
	// An argument that `properties` does not name is refused unless the schema permits others.
	members(where, value, schema, depth) {
		const inner = (name) => (where ? `${where}.${name}` : `argument '${name}'`);
		const known = isObject(schema.properties) ? schema.properties : {};
		const patterns = isObject(schema.patternProperties) ? schema.patternProperties : {};
		for (const name of words(schema.required)) {
			if (name in value) continue;
			const expected = this.follow(known[name]);
			const kinds = isObject(expected) ? words(expected.type) : [];
			this.say(inner(name), `is required${kinds.length ? `: ${oneOf(kinds)}` : ''}`, expected);
		}
		const closed = depth === 0 && Object.keys(known).length && !Object.keys(patterns).length;
		const rest = 'additionalProperties' in schema ? schema.additionalProperties : !closed;
		for (const [name, item] of Object.entries(value)) {
			const fitting = Object.keys(patterns).filter((p) => matches(p, name)).map((p) => patterns[p]);
			if (Object.prototype.hasOwnProperty.call(known, name)) fitting.push(known[name]);
			for (const one of fitting) this.look(inner(name), item, one, depth + 1);
			if (fitting.length) continue;
			if (rest === false) {
				const near = nearest(name, Object.keys(known));
				const others = Object.keys(known).map((k) => `'${k}'`).join(', ') || 'none';
				this.say(inner(name), `is unknown; ${near ? `did you mean '${near}'?` : `known are: ${others}`}`);
			} else {
				this.look(inner(name), item, rest, depth + 1);
			}
		}
	}
	items(where, value, schema, depth) {
		const first = list(schema.prefixItems);
		for (let i = 0; i < value.length && this.problems.length < PROBLEMS_MAX; i++) {
			this.look(`${where}[${i}]`, value[i], i < first.length ? first[i] : schema.items, depth + 1);
		}
	}
	combined(where, value, schema, depth) {
		for (const one of list(schema.allOf)) this.look(where, value, one, depth + 1);
		for (const key of ['anyOf', 'oneOf']) {
			const choices = list(schema[key]).map((one) => this.follow(one));
			const fitting = choices.filter((one) => this.fits(value, one, depth + 1)).length;
			if (choices.length && !fitting) {
				const near = choices.filter((one) => isObject(one) && words(one.type).some((kind) => fitsType(value, kind)));
				const kinds = choices.filter(isObject).flatMap((one) => words(one.type));
				if (near.length === 1) this.look(where, value, near[0], depth + 1);
				else this.say(where, `must be ${kinds.length ? oneOf(kinds) : `one of ${choices.length} things`}, not ${typeOf(value)}: ${show(value)}`, schema);
			} else if (key === 'oneOf' && fitting > 1) {
				this.say(where, `fits ${fitting} of the schemas in oneOf, and must fit one`, schema);
			}
		}
		if (isObject(schema.not) && this.fits(value, schema.not, depth + 1)) this.say(where, `must not be ${show(value)}`, schema);
	}
}

module.exports = { Check, isObject, list, nearest, words };
