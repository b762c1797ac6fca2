// SPDX-License-Identifier: Apache-2.0
// fetch.js - Resolve and download packages of npm, in a cell of its own; fetch.py, which does this for python, describes the messages.
'use strict';
const fs = require('fs');
const path = require('path');
const { spawn } = require('child_process');

const SITE = '/tmp/site';
const HOME = '/tmp/fetch';
const CERTS = '/etc/ssl/certs/ca-certificates.crt';
const LOG_MAX = 4000;

// Messages of npm, and their meaning. The first match counts.
const MEANINGS = [
  ['index_unavailable', /ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|ERR_SOCKET_TIMEOUT|timed out|code E(?:401|403|5\d\d)|SELF_SIGNED|UNABLE_TO_|CERT_|EJSONPARSE|FETCH_ERROR|ERR_INVALID_/,
    'the index did not answer, or its answer is not that of an index'],
  ['too_big', /ENOSPC|no space left/i, 'no space: the packages are larger than allowed'],
  ['conflict', /ERESOLVE|conflicting/, 'its dependencies contradict each other'],
  ['invalid_package', /EBADZIP|TAR_BAD_ARCHIVE|TAR_ENTRY|Z_DATA_ERROR|zlib/, 'the index has an invalid package'],
  ['hash_mismatch', /EINTEGRITY/, 'the downloaded file has another hash'],
  ['build_failed', /npm (?:error|ERR!) command failed/, 'the package could not be built'],
  ['package_not_found', /code E404|not found : /, 'the index has no such package'],
  ['version_not_found', /code ETARGET|No matching version/, 'the index has no suitable version of it'],
];

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

function failed(log) {
  const [code, , text] = MEANINGS.find(([, pattern]) => pattern.test(log)) || ['install_failed', null, 'it could not be installed'];
  const said = /npm (?:error|ERR!) ((?:notarget|404|Cannot|network|request to).{0,200})/.exec(log);
  return new Failed(code, text + (said ? ': ' + said[1].trim() : ''), log.slice(-LOG_MAX));
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
  if (fs.existsSync(prefix + '/include/node/node.h')) env.NPM_CONFIG_NODEDIR = prefix; // builds then need no download of the headers
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

// The packages that the lock lists, as the front gets them.
function closureOf(task, lock) {
  const packages = new Map();
  for (const [place, item] of Object.entries(lock)) {
    if (!place) continue;
    const name = place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);
    packages.set(name + '@' + item.version, {
      name, version: item.version, integrity: item.integrity || '', built: Boolean(task.scripts && item.hasInstallScript),
      needs: Object.keys(item.dependencies || {}).sort(),
    });
  }
  const all = [...packages.values()];
  const names = new Set(all.map((p) => p.name));
  for (const p of all) p.needs = p.needs.filter((n) => names.has(n) && n !== p.name);
  return all;
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
  const lock = JSON.parse(fs.readFileSync(SITE + '/package-lock.json', 'utf8')).packages;
  if (!lock) throw new Failed('no_installer', 'the npm ' + version + ' of the image is too old: 7 or later is required');
  const packages = closureOf(task, lock);
  say('closure', { packages, installer: 'npm ' + version });
  steps.total = packages.length + 1;
  if (!await allowed()) process.exit(0);
  step('Downloading ' + packages.length + ' packages');
  await npm(task, 'ci', task.scripts ? '--foreground-scripts' : '--ignore-scripts');
  steps.done = steps.total;
  say('progress', { text: 'Installed', done: steps.done, total: steps.total });
}

async function main() {
  for (const d of [HOME, SITE]) fs.mkdirSync(d, { recursive: true });
  await install(JSON.parse(process.argv[process.argv.length - 1]));
  say('done');
}

// The front may keep the input open: end with a message instead of waiting for its end.
main().catch((error) => {
  if (error instanceof Failed) say('error', { code: error.code, message: error.message, log: error.log });
  else say('error', { code: error.code === 'ENOSPC' ? 'too_big' : 'install_failed', message: String(error.message), log: '' });
}).then(() => process.exit(0));
