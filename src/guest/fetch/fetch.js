// SPDX-License-Identifier: Apache-2.0
// fetch.js - Resolve and download packages of npm, in a cell of its own; fetch.py, which does this for python, describes the messages.
'use strict';
const fs = require('fs');
const path = require('path');
const { spawn } = require('child_process');
const { globalPaths } = require('module');

const SITE = '/tmp/site';
const HOME = '/tmp/fetch';
const CERTS = '/etc/ssl/certs/ca-certificates.crt';
const LOG_MAX = 4000;

// Errors of npm, and their meaning. The first match counts.
const MEANINGS = [
  ['index_unavailable', /ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|ERR_SOCKET_TIMEOUT|timed out|code E(?:401|403|5\d\d)|SELF_SIGNED|UNABLE_TO_|CERT_|EJSONPARSE|FETCH_ERROR|ERR_INVALID_/,
    'the index did not answer, or its answer is not that of an index'],
  ['too_big', /ENOSPC|no space left/i, 'no space: the packages are larger than allowed'],
  ['conflict', /ERESOLVE|conflicting/, 'its dependencies contradict each other'],
  ['invalid_package', /EBADZIP|TAR_BAD_ARCHIVE|TAR_ENTRY|Z_DATA_ERROR|zlib/, 'the index has an invalid package'],
  ['hash_mismatch', /EINTEGRITY/, 'the downloaded file has another hash'],
  ['build_failed', /^command failed/m, 'the package could not be built'],
  ['package_not_found', /code E404|not found : /, 'the index has no such package'],
  ['version_not_found', /code ETARGET|No matching version/, 'the index has no suitable version of it'],
];

// Lines of an error that explain nothing: codes, paths, and advice for a person at a terminal.
const NOISE = new RegExp('^(?:$|code |errno |syscall |path |/|node_modules/| {2}|Note that |tarball, folder|In most cases |a package version that|' +
  "or have bad network|If you are behind|'proxy' config|This is a problem|Fix the |this command with|to accept an incorrect|For a full report|" +
  'A complete log|While resolving: packages@)');

class Failed extends Error {
  constructor(code, message, log) {
    super(message);
    this.code = code;
    this.log = log || '';
  }
}

const steps = { done: 0, total: 0 };

function say(event, members) {
  fs.writeSync(1, JSON.stringify(Object.assign({ event }, members)) + '\n');
}

function step(text) {
  steps.done = Math.min(steps.done + 1, steps.total);
  say('progress', { text, done: steps.done, total: steps.total });
}

// npm's own reason, in one line. After the reason, an error of usage has the description of the command and its options.
function reasonOf(errors) {
  let end = errors.findIndex((line) => /^Usage:/.test(line));
  while (end > 0 && !errors[--end].trim());
  const lines = errors.slice(0, end < 0 ? errors.length : end).map((line) => line.replace(/^(?:404|notarget|network|ERESOLVE)(?: |$)/, ''));
  return lines.filter((line) => !NOISE.test(line)).join(' ').trim();
}

function failed(log) {
  const errors = (log.match(/^npm (?:error|ERR!).*$/gm) || []).map((line) => line.replace(/^npm \S+ ?/, ''));
  const [code, , text] = MEANINGS.find(([, pattern]) => pattern.test(errors.join('\n') || log)) || ['install_failed', null, 'it could not be installed'];
  const reason = reasonOf(errors);
  const others = log.replace(/^npm (?:error|ERR!|warn|WARN|notice).*\n?/gm, '').trim(); // the output of a build; or npm broke
  return new Failed(code, reason && code !== 'build_failed' ? text + ': ' + reason : text, reason && code !== 'build_failed' ? '' : others.slice(-LOG_MAX));
}

// The path of the program, if the image's PATH has it.
function which(name) {
  return (process.env.PATH || '').split(':').map((d) => path.join(d, name)).find((p) => fs.existsSync(p));
}

// The image's variables, except those that would change the behaviour of npm.
function environment() {
  const env = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (!/^npm_config_|_proxy$/i.test(name)) env[name] = value;
  }
  return Object.assign(env, { HOME, NPM_CONFIG_USERCONFIG: HOME + '/npmrc', NPM_CONFIG_GLOBALCONFIG: HOME + '/npmrc.global' });
}

// The machine's certificates are there. The registry may also have one that only the image trusts.
function addOwnCerts(task) {
  if (!task.certs || !fs.existsSync(CERTS)) return;
  const own = fs.readFileSync(CERTS);
  if (!fs.readFileSync(task.certs).includes(own)) fs.appendFileSync(task.certs, own);
}

// The output of npm, if it succeeded.
function npm(task, ...args) {
  const env = environment();
  const options = ['--no-audit', '--no-fund', '--no-update-notifier', '--cache', HOME + '/cache', '--registry', task.index,
    '--fetch-retries', '1', '--fetch-timeout', '20000'];
  const certs = task.certs || CERTS;
  if (fs.existsSync(certs)) {
    options.push('--cafile', certs);
    env.NODE_EXTRA_CA_CERTS = certs;
  }
  if (new URL(task.index).hostname.endsWith('.caisson.internal')) options.push('--replace-registry-host', 'always'); // such a registry does not know its own name
  const prefix = path.dirname(path.dirname(process.execPath));
  if (fs.existsSync(prefix + '/include/node/node.h')) env.npm_config_nodedir = prefix; // builds then need no download of the headers; older node-gyps know small letters only
  return new Promise((resolve, reject) => {
    const child = spawn('npm', [...args, ...options], { cwd: SITE, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let log = '';
    const keep = (data) => { log = (log + data).slice(-(1 << 20)); };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.on('error', reject);
    child.on('close', (status) => (status === 0 ? resolve(log) : reject(failed(log))));
  });
}

// Whether npm leaves an optional package out, because it is for another system.
function isForeign(item) {
  const fits = (value, list) => {
    const words = [].concat(list || 'any');
    return !words.includes('!' + value) && (words.includes(value) || words.includes('any') || words.every((word) => word[0] === '!'));
  };
  return item.optional && !(fits(process.platform, item.os) && fits(process.arch, item.cpu));
}

const lockOf = (file) => JSON.parse(fs.readFileSync(path.join(SITE, file), 'utf8')).packages;

// A place may have another name than its package.
const nameOf = (place, item) => item.name || place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);

// The packages of a lock that npm installs here, as the front gets them.
function closureOf(task, lock) {
  const packages = new Map();
  for (const [place, item] of Object.entries(lock)) {
    if (!place || isForeign(item)) continue;
    const name = nameOf(place, item);
    if (!item.integrity && packages.has(name + '@' + item.version)) continue; // the same, bundled: its hash is that of another archive
    packages.set(name + '@' + item.version, {
      name, version: item.version, integrity: item.integrity || '', built: Boolean(task.scripts && item.hasInstallScript),
      needs: Object.keys({ ...item.dependencies, ...item.optionalDependencies, ...item.peerDependencies }).sort(),
    });
  }
  const all = [...packages.values()];
  const names = new Set(all.map((p) => p.name));
  for (const p of all) p.needs = p.needs.filter((n) => names.has(n) && n !== p.name);
  return all;
}

// npm adds packages that its lock lacks; the front has judged none but those of the lock. A bundled package is part of the archive of
// another, whose hash was judged.
function checkInstalled(judged) {
  const keyOf = (name, item) => name + '@' + item.version + ' ' + (item.integrity || '');
  const known = new Set(judged.map((p) => keyOf(p.name, p)));
  for (const [place, item] of Object.entries(lockOf('node_modules/.package-lock.json'))) {
    const name = nameOf(place, item);
    if (!item.inBundle && !known.has(keyOf(name, item))) throw new Failed('install_failed', 'npm installed ' + name + ' ' + item.version + ', which it had not announced');
  }
}

// Modules of the image in a directory of NODE_PATH, or where Debian's node looks (/usr/share/nodejs), find each other along NODE_PATH, as
// code finds the tree: and there the tree comes first. So a dependency that the image has as well, in any version, is taken out of the way:
// the tree moves to SITE/all, where its packages find each other as before, and SITE/node_modules links to all others of them, and to those
// that were asked for. The image's own copy does not replace one of the tree: npm counts on none, and import does not look along NODE_PATH.
function keepImageModules(task) {
  const top = path.join(SITE, 'node_modules');
  const asked = new Set(task.requirements.map((r) => r.replace(/(.)@.*$/, '$1')));
  const names = fs.readdirSync(top).flatMap((n) => (n[0] === '@' ? fs.readdirSync(path.join(top, n)).map((m) => n + '/' + m) : [n]));
  const inTheWay = (name) => !asked.has(name) && globalPaths.some((d) => fs.existsSync(path.join(d, name, 'package.json')));
  if (!names.some(inTheWay)) return;
  fs.mkdirSync(path.join(SITE, 'all'));
  fs.renameSync(top, path.join(SITE, 'all', 'node_modules'));
  for (const name of names.filter((n) => !inTheWay(n))) {
    const link = path.join(top, name);
    fs.mkdirSync(path.dirname(link), { recursive: true });
    fs.symlinkSync(path.relative(path.dirname(link), path.join(SITE, 'all', 'node_modules', name)), link);
  }
}

// One line from the front, after it has judged the closure.
function allowed() {
  return new Promise((resolve) => {
    process.stdin.once('data', (data) => resolve(String(data).trim() === 'go'));
    process.stdin.once('end', () => resolve(false));
  });
}

// Credentials in npm's format. They are placeholders: the gate has the values, and sends them only to the registry.
function writeCredentials(task) {
  const [user, password, token] = ['USER', 'PASSWORD', 'TOKEN'].map((name) => process.env['CAISSON_NPM_' + name] || '');
  const { host, pathname } = new URL(task.index);
  const place = '//' + host + pathname.replace(/\/*$/, '/');
  const line = token ? ':_authToken=' + token : ':_auth=' + Buffer.from(user + ':' + password).toString('base64');
  fs.writeFileSync(HOME + '/npmrc', token || user || password ? place + line + '\n' : '');
}

async function install(task) {
  if (!which('npm')) throw new Failed('no_installer', 'the image has node, and no npm');
  writeCredentials(task);
  fs.writeFileSync(SITE + '/package.json', JSON.stringify({ name: 'packages', version: '0.0.0', private: true }));
  const version = (await npm(task, '--version')).trim();
  step('Resolving ' + task.requirements.join(', ').slice(0, 100));
  await npm(task, 'install', '--ignore-scripts', '--package-lock-only', ...task.requirements);
  const lock = lockOf('package-lock.json');
  if (!lock) throw new Failed('no_installer', 'the npm ' + version + ' of the image is too old: 7 or later is required');
  const packages = closureOf(task, lock);
  say('closure', { packages, installer: 'npm ' + version });
  steps.total = packages.length + 1;
  if (!await allowed()) process.exit(0);
  step('Downloading ' + packages.length + ' packages');
  await npm(task, 'install', '--ignore-scripts'); // not ci, which refuses locks of npm's own that lack optional packages for other systems
  checkInstalled(packages);
  if (task.scripts) { // once more, with the lock that is now complete: rebuild would fail for an optional package whose script fails
    fs.rmSync(SITE + '/node_modules', { recursive: true });
    await npm(task, 'install', '--foreground-scripts', '--prefer-offline');
  }
  keepImageModules(task);
  steps.done = steps.total;
  say('progress', { text: 'Installed', done: steps.done, total: steps.total });
}

async function main() {
  for (const d of [HOME, SITE]) fs.mkdirSync(d, { recursive: true });
  const task = JSON.parse(process.argv[process.argv.length - 1]);
  addOwnCerts(task);
  await install(task);
  say('done');
}

// The front may keep the input open: end with a message instead of waiting for its end.
main().catch((error) => {
  if (error instanceof Failed) say('error', { code: error.code, message: error.message, log: error.log });
  else say('error', { code: error.code === 'ENOSPC' ? 'too_big' : 'install_failed', message: String(error.message), log: '' });
}).then(() => process.exit(0));
