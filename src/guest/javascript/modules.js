// SPDX-License-Identifier: Apache-2.0
// modules.js - require and import for code, from the working directory of the javascript kernel.
//
// Theory of operation. Code finds require, module, exports, __filename and __dirname as a file "[kernel]" in the working
// directory would. import() has node's own loader where scripts can be given that; else packages are looked up here. node's
// loader does not look along NODE_PATH, where installed packages are: it is asked again, as if by a file beside them.
'use strict';

const fs = require('fs');
const path = require('path');
const url = require('url');
const vm = require('vm');
const { createRequire, builtinModules } = require('module');

const { quietly } = require('./sigint.js');

const { parse } = JSON;

// The entry of a package for import, if `require.resolve` does not find it (a package for import alone).
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

// node's own loader, for a script in this directory.
const loaderOf = (directory) => vm.runInThisContext('(s, o) => (o === undefined ? import(s) : import(s, o))', {
	filename: path.join(directory, '[kernel]'),
	importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
});

// The directory whose node_modules is in NODE_PATH and has the package; undefined if no directory has it.
function homeOf(specifier) {
	const [name] = /^(?:@[^/]+\/)?[^./@][^/]*/.exec(specifier) || [''];
	const directories = (process.env.NODE_PATH || '').split(path.delimiter).filter((d) => path.basename(d) === 'node_modules');
	const found = name && directories.find((d) => fs.existsSync(path.join(d, name)));
	return found && path.dirname(found);
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
		this.nativeImport = vm.constants && vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER ? loaderOf(cwd) : null;
	},
	async import(specifier, options) {
		specifier = String(specifier);
		if (this.nativeImport) {
			return quietly(() => this.nativeImport(specifier, options)).catch((e) => this.importInstalled(specifier, options, e));
		}
		if (/^\.{0,2}\//.test(specifier)) return import(url.pathToFileURL(path.resolve(this.cwd, specifier)).href);
		if (/^[a-z]+:/i.test(specifier) || builtinModules.includes(specifier)) return import(specifier);
		return import(url.pathToFileURL(this.locate(specifier)).href);
	},
	// What node's loader did not find, because it does not look along NODE_PATH. It resolves packages in a node_modules there all the
	// same, with all conditions; for other directories (/usr/share/nodejs of Debian's packages) it has no way, so locate() does it.
	importInstalled(specifier, options, error) {
		if (!error || error.code !== 'ERR_MODULE_NOT_FOUND' || /^\.{0,2}\/|^[a-z]+:/i.test(specifier)) throw error;
		const home = homeOf(specifier);
		if (home) return quietly(() => loaderOf(home)(specifier, options));
		let file;
		try {
			file = this.locate(specifier);
		} catch (ignored) {
			throw error;
		}
		return quietly(() => this.nativeImport(url.pathToFileURL(file).href, options));
	},
	// The file of a package.
	locate(specifier) {
		try {
			return this.require.resolve(specifier);
		} catch (e) {
			const file = entryForImport(specifier, this.require.resolve.paths(specifier) || []);
			if (!file) throw e;
			return file;
		}
	},
};

module.exports = { modules };
