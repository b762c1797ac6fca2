// SPDX-License-Identifier: Apache-2.0
// compile.js - Turns code as people write it into functions that the javascript kernel can run.
//
// Theory of operation. Code is rewritten before it is compiled (`rewrite`), by edits that keep every line where it is.
// The parser is the acorn that every node carries for its own REPL; without it, or for syntax it does not know,
// the code runs unchanged.
//  - Top-level const, let and class become var: globals, which the next execution sees and may declare again.
//  - Code without top-level await is a plain script. Code with it becomes a generator, `await x` becomes
//    `yield x`, and the driver steps it. So each part between two awaits runs under the same guard as a
//    script, and an interrupted execution goes no further.
//  - import(), import.meta and import declarations go through `__caisson`, which resolves them from the
//    working directory (modules.js).
'use strict';

const vm = require('vm');

const { quietly } = require('./sigint.js');

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
	// At one place, later edits go further out: text before goes before, text after goes after.
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

	// Depth first: inner edits come before outer ones, see Edits.
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

	// A `var` in a block of the program belongs to the program.
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

// rewrite(CODE): the text to compile. `columns` is the shift of the first line.
function rewrite(code) {
	if (code.startsWith('#!')) code = `//${code.slice(2)}`;
	if (/^\s*\{/.test(code) && !/;\s*$/.test(code)) {
		// People mean an object here, although the grammar has a block.
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

// From one top-level await to the next: {value} at the end, else {generator, awaited}.
function part(generator, method, got) {
	const { done, value } = generator[method](got);
	return done ? { value } : { generator, awaited: value };
}

// compile(CODE, NAME): a function that runs the code up to the first await, see `part`. Throws SyntaxError,
// with V8's message for the original code.
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
		// Without a parser, await works, but names do not persist, and there is no last expression.
		plan.isGenerator = false;
	}
	return () => {
		makeRoom(plan.names);
		const value = script.runInThisContext({ displayErrors: false });
		if (plan.isGenerator) return part(value.call(globalThis), 'next');
		return { value: plan.hasValue ? value : undefined };
	};
}

module.exports = { compile, parseCode, part };
