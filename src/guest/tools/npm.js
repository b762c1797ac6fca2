// SPDX-License-Identifier: Apache-2.0
// npm.js - `npm install` and `npx` in a cell: request the packages of the daemon, which fetches, checks and keeps them.
//
// Theory of operation. pip_install.py, beside this file, describes the request. The packages are in a directory of their own,
// /packages/KEY/node_modules, which the next kernels and commands have in NODE_PATH. As npm would, the project's own
// node_modules gets them as well: a link for each requested package and for its programs, so that processes that run already,
// `import` and npm's scripts find them. -g links them in the home directory, where node and PATH look, too.
//
// usage: node npm.js npm|npx ARGUMENTS...     What needs no network, or has one, goes to the program of the image.
'use strict';

const { spawnSync } = require('child_process');
const fs = require('fs');
const net = require('net');
const path = require('path');

const ADDRESS = { host: '198.18.0.1', port: 61052 };
const REACHED_MS = 1000;
const TOOLS = '/packages/tools/';
const HOME = process.env.HOME || '/home/agent';
const REGISTRY = process.env.NPM_CONFIG_REGISTRY || process.env.npm_config_registry || 'https://registry.npmjs.org';
const IDLE = new Set(['-S', '--save', '-s', '--silent', '-q', '--quiet', '--no-audit', '--no-fund', '--no-progress', '-f', '--force', '-y', '--yes']);

class Refused extends Error {}
class RefusedOption extends Refused {} // where the sandbox reaches the registry, the image's own npm has every option
class Local extends Error {} // the image's own npm has to do it

const [name, ...args] = process.argv.slice(2);

function programs(wanted) {
	const directories = (process.env.PATH || '').split(':').filter((d) => !`${d}/`.startsWith(TOOLS));
	return directories.map((d) => path.join(d, wanted)).filter((p) => isProgram(p));
}

function isProgram(file) {
	try {
		fs.accessSync(file, fs.constants.X_OK);
		return fs.statSync(file).isFile();
	} catch (e) {
		return false;
	}
}

function run(program, words) {
	const { status, signal, error } = spawnSync(program, words, { stdio: 'inherit' });
	if (error) throw error;
	if (signal) process.kill(process.pid, signal);
	process.exit(status);
}

function runImage() {
	const [program] = programs(name);
	if (!program) throw new Refused(`this image has no ${name}`);
	run(program, args);
}

// --- the daemon

function hostOf(address) {
	try {
		return new URL(address).hostname;
	} catch (e) {
		return '';
	}
}

function connect() {
	return new Promise((resolve, reject) => {
		const socket = net.connect(ADDRESS, () => resolve(socket));
		socket.once('error', reject);
	});
}

// The port is there a moment after the sandbox's first program.
async function reach() {
	for (const until = Date.now() + REACHED_MS; ; ) {
		try {
			return await connect();
		} catch (e) {
			if (Date.now() > until) throw new Refused('the daemon does not answer; from outside use POST /v1/sandboxes/NAME/packages');
			await new Promise((resolve) => setTimeout(resolve, 20));
		}
	}
}

// The daemon's answer. Without packages it only tells whether the sandbox may reach the registry: then npm itself can do it.
async function request(packages, registry = registryOf(args)) {
	const socket = await reach();
	const pieces = [];
	socket.write(JSON.stringify({ language: 'javascript', packages, index: hostOf(registry) }) + '\n');
	const answer = await new Promise((resolve, reject) => {
		socket.on('data', (piece) => pieces.push(piece));
		socket.on('error', reject);
		socket.on('end', () => resolve(Buffer.concat(pieces).toString()));
	});
	socket.destroy();
	const said = JSON.parse(answer || '{"error": "the daemon gave no answer", "code": "failed"}');
	if (said.direct) throw new Local();
	if (said.error && packages.length) throw new Refused(`${said.error}${said.hint ? ` (${said.hint})` : ''} (${said.code})`);
	return said;
}

// --- packages

// "@scope/name@range": the name and the range.
function parse(text) {
	if (/^[./~]|:|\.tgz$/.test(text) || (text.includes('/') && text[0] !== '@')) throw new Local();
	const at = text.indexOf('@', 1);
	return at < 0 ? { name: text, range: '' } : { name: text.slice(0, at), range: text.slice(at + 1) };
}

const written = (wanted) => (wanted.range ? `${wanted.name}@${wanted.range}` : wanted.name);

function readPackage(directory) {
	try {
		return JSON.parse(fs.readFileSync(path.join(directory, 'package.json'), 'utf8'));
	} catch (e) {
		if (e.code === 'ENOENT' || e.code === 'ENOTDIR') return null;
		throw new Refused(`${directory}/package.json: ${e.message}`);
	}
}

// The directory that npm would install to: the nearest one with a package.json or node_modules.
function projectOf(start) {
	for (let d = path.resolve(start); ; d = path.dirname(d)) {
		if (fs.existsSync(path.join(d, 'package.json')) || fs.existsSync(path.join(d, 'node_modules'))) return d;
		if (d === path.dirname(d)) return path.resolve(start);
	}
}

// Replaces a link of ours, and nothing else.
function link(target, file) {
	fs.mkdirSync(path.dirname(file), { recursive: true });
	let there = null;
	try {
		there = fs.readlinkSync(file);
	} catch (e) {
		if (e.code === 'EINVAL') {
			console.error(`${name}: ${file} is there already and stays as it is`);
			return;
		}
	}
	if (there !== null && !there.startsWith('/packages/')) return;
	if (there !== null) fs.unlinkSync(file);
	fs.symlinkSync(target, file);
}

// The names of a package's programs; the first is the one that npx runs.
function programsOf(directory, wanted) {
	const { bin } = readPackage(directory) || {};
	const short = wanted.replace(/^@[^/]+\//, '');
	if (!bin) return [];
	if (typeof bin === 'string') return [short];
	const names = Object.keys(bin);
	return names.includes(short) ? [short, ...names.filter((n) => n !== short)] : names;
}

function show(tree, wanted, modules, bin) {
	for (const { name: package_ } of wanted) {
		const directory = path.join(tree, 'node_modules', package_);
		link(directory, path.join(modules, package_));
		for (const program of programsOf(directory, package_)) link(path.join(tree, 'node_modules/.bin', program), path.join(bin, program));
	}
}

// As npm does: the range that was asked for, or the version with everything compatible.
function save(project, wanted, versions, dev) {
	const own = readPackage(project);
	if (!own) return;
	const key = dev ? 'devDependencies' : 'dependencies';
	own[key] = { ...own[key] };
	for (const w of wanted) own[key][w.name] = w.range && w.range !== 'latest' ? w.range : `^${versions.get(w.name)}`;
	fs.writeFileSync(path.join(project, 'package.json'), JSON.stringify(own, null, 2) + '\n');
}

// --- commands

async function install(words) {
	const options = { prefix: null, global: false, dev: false, save: true };
	const wanted = [];
	while (words.length) {
		const word = words.shift();
		const [option, value] = word.startsWith('--') && word.includes('=') ? [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)] : [word, null];
		const take = () => (value === null ? words.shift() || '' : value);
		if (option === '--prefix' || option === '-C') options.prefix = take();
		else if (option === '-g' || option === '--global') options.global = true;
		else if (option === '-D' || option === '--save-dev') options.dev = true;
		else if (option === '--no-save') options.save = false;
		else if (option === '--loglevel') take();
		else if (option === '-h' || option === '--help') throw new Local();
		else if (IDLE.has(option)) continue;
		else if (option.startsWith('-')) throw new RefusedOption(`${option} is not supported here; the daemon installs, from the operator's registry`);
		else wanted.push(parse(word));
	}
	const project = options.prefix === null ? projectOf('.') : path.resolve(options.prefix);
	const named = wanted.length > 0;
	if (!named) {
		const own = readPackage(project);
		if (!own) throw new Refused(`name a package; ${project} has no package.json`);
		for (const [n, range] of Object.entries({ ...own.devDependencies, ...own.dependencies })) wanted.push(parse(`${n}@${range}`));
	}
	if (!wanted.length) {
		console.log('up to date');
		return;
	}
	const { tree, packages } = await request(wanted.map(written));
	if (options.global) show(tree, wanted, path.join(HOME, '.node_modules'), path.join(HOME, '.local/bin'));
	else show(tree, wanted, path.join(project, 'node_modules'), path.join(project, 'node_modules/.bin'));
	if (named && options.save && !options.global) save(project, wanted, new Map(packages), options.dev);
	console.log(`added ${packages.length} package${packages.length === 1 ? '' : 's'}`);
}

// A program of the project, or of PATH, or of a package that is fetched for it.
async function execute(words) {
	const wanted = [];
	while (words.length && words[0].startsWith('-')) {
		const word = words.shift();
		if (word === '--') break;
		if (word === '-p' || word === '--package') wanted.push(parse(words.shift() || ''));
		else if (word.startsWith('--package=')) wanted.push(parse(word.slice(10)));
		else if (!IDLE.has(word)) throw new Local();
	}
	if (!words.length) throw new Local();
	const [first, ...rest] = words[1] === '--' ? [words[0], ...words.slice(2)] : words;
	const command = wanted.length ? null : parse(first);
	if (!command || !command.range) {
		for (let d = process.cwd(); ; d = path.dirname(d)) {
			const program = path.join(d, 'node_modules/.bin', command ? command.name : first);
			if (isProgram(program)) run(program, rest);
			if (d === path.dirname(d)) break;
		}
		const [found] = command && !command.name.includes('/') ? programs(command.name) : [];
		if (found) run(found, rest);
	}
	if (command) wanted.push(command);
	const { tree } = await request(wanted.map(written));
	const [program] = command ? programsOf(path.join(tree, 'node_modules', command.name), command.name) : [first];
	if (!program) throw new Refused(`${command.name} has no program`);
	run(path.join(tree, 'node_modules/.bin', program), rest);
}

// The registry that npm would use: that of the command line, else of the environment, else its own.
function registryOf(words) {
	const at = words.findIndex((word) => /^--registry(=|$)/.test(word));
	return at < 0 ? REGISTRY : words[at].slice(11) || words[at + 1] || '';
}

async function main() {
	const at = name === 'npx' ? -1 : args.findIndex((word, i) => /^(install|i|in|add|ci|clean-install|exec|x)$/.test(word) && !/^(--prefix|-C)$/.test(args[i - 1]));
	const verb = at < 0 ? 'npx' : args[at];
	const words = args.filter((_, i) => i !== at);
	try {
		if (verb === 'ci' || verb === 'clean-install') {
			await request([]);
			throw new Refused('the daemon does not install by a lock file; use npm install');
		}
		await (/^(npx|exec|x)$/.test(verb) ? execute(words) : install([...words]));
	} catch (refusal) {
		const e = refusal instanceof RefusedOption ? await request([]).then(() => refusal, (other) => other) : refusal;
		if (e instanceof Local) {
			runImage();
			return;
		}
		console.error(`${name}${verb === name ? '' : ` ${verb}`}: ${e.message}`);
		process.exit(1);
	}
}

main();
