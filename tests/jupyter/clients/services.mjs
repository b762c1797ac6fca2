// SPDX-License-Identifier: Apache-2.0
// services.mjs - JupyterLab's own client library against a daemon: what a notebook does, with `framing` v1 or json.
// usage: node services.mjs URL TOKEN v1|json     One line of JSON with what was seen.
import { createRequire } from 'module';
const require = createRequire(import.meta.url);
const WebSocket = require('ws');
const { KernelManager, KernelMessage, KernelSpecManager, ServerConnection, SessionManager } = require('@jupyterlab/services');

const [, , baseUrl, token, framing] = process.argv;
const offered = [];

// Without the subprotocol a server speaks the older framing: so a client that does not offer it is the other test.
class Socket extends WebSocket {
	constructor(url, protocols, ...rest) {
		super(url, framing === 'json' ? [] : protocols, ...rest);
		this.on('open', () => offered.push(this.protocol));
	}
}
const serverSettings = ServerConnection.makeSettings({ baseUrl, wsUrl: baseUrl.replace('http', 'ws'), token, appendToken: true, WebSocket: Socket });
const seen = {};

const specs = new KernelSpecManager({ serverSettings });
await specs.ready;
seen.specs = Object.keys(specs.specs.kernelspecs).sort();
const manager = new KernelManager({ serverSettings });
const sessions = new SessionManager({ kernelManager: manager, serverSettings });
await sessions.ready;
const session = await sessions.startNew({ path: 'a.ipynb', name: 'a', type: 'notebook', kernel: { name: 'python3' } });
const kernel = session.kernel;
seen.info = (await kernel.info).language_info.name;

async function run(code, options = {}) {
	const out = { types: [] };
	const future = kernel.requestExecute({ code, ...options });
	future.onIOPub = (m) => {
		out.types.push(m.header.msg_type);
		if (KernelMessage.isStreamMsg(m)) out.text = (out.text || '') + m.content.text;
		if (KernelMessage.isExecuteResultMsg(m) || KernelMessage.isDisplayDataMsg(m)) out.data = m.content.data;
	};
	future.onStdin = (m) => {
		if (KernelMessage.isInputRequestMsg(m)) kernel.sendInputReply({ value: 'from node', status: 'ok' }, m.header);
	};
	out.reply = (await future.done).content;
	return out;
}

seen.print = await run("print('hi')\n6 * 7");
seen.error = (await run('1/0')).reply.ename;
seen.input = (await run("input('? ')", { allow_stdin: true })).data;
seen.complete = (await kernel.requestComplete({ code: 'import os\nos.getcw', cursor_pos: 19 })).content.matches;
await run('import os');
seen.complete = (await kernel.requestComplete({ code: 'os.getcw', cursor_pos: 8 })).content.matches;
seen.inspect = (await kernel.requestInspect({ code: 'print', cursor_pos: 5, detail_level: 0 })).content.found;
seen.history = (await kernel.requestHistory({ hist_access_type: 'tail', n: 1, output: false, raw: true, session: 0, start: 0, stop: 0, pattern: '', unique: false })).content.history.length;
const forever = kernel.requestExecute({ code: "print('go')\nwhile True: pass" });
await new Promise((resolve) => { forever.onIOPub = (m) => KernelMessage.isStreamMsg(m) && resolve(); });
await kernel.interrupt();
seen.interrupted = (await forever.done).content.ename;
await run('x = 1');
await kernel.restart();
seen.restarted = (await run('x')).reply.ename;
seen.running = [...manager.running()].length;
await manager.refreshRunning();
seen.listed = [...manager.running()].some((k) => k.id === kernel.id);
const id = kernel.id;
await session.shutdown();
await manager.refreshRunning();
seen.gone = ![...manager.running()].some((k) => k.id === id);
seen.protocols = [...new Set(offered)];
console.log(JSON.stringify(seen));
process.exit(0);
