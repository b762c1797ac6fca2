// SPDX-License-Identifier: Apache-2.0
// interfaces.js - os.networkInterfaces() in a cell: node reads this file before any program (NODE_OPTIONS; CELL_NODE_PRELOAD in cell/spec.h).
//
// node asks the Linux kernel by netlink, which no cell has, and throws without it; servers that print their addresses end then.
// A cell has one interface, lo, which nothing in it can change. Any node has to be able to read this, so it is plain.
'use strict';
const fs = require('fs');
const nodeModule = require('module');
const os = require('os');

const { networkInterfaces } = os;
const address = (family, text, netmask, bits) => ({ address: text, netmask, family, mac: '00:00:00:00:00:00', internal: true, cidr: `${text}/${bits}` });
const FULL = Array(8).fill('ffff').join(':');

// /proc/net/if_inet6 has 32 digits first and the interface last; a machine without IPv6 has no such file.
function inet6() {
	const lines = fs.existsSync('/proc/net/if_inet6') ? fs.readFileSync('/proc/net/if_inet6', 'latin1').split('\n') : [];
	return lines.filter((line) => / lo$/.test(line)).map((line) => {
		const text = new URL(`http://[${line.slice(0, 32).match(/.{4}/g).join(':')}]`).hostname.slice(1, -1);
		return Object.assign(address('IPv6', text, FULL, 128), { scopeid: 0 });
	});
}

os.networkInterfaces = () => {
	try {
		return networkInterfaces();
	} catch (e) {
		if (e.syscall !== 'uv_interface_addresses') throw e;
		return { lo: [address('IPv4', '127.0.0.1', '255.0.0.0', 8), address('IPv4', '198.18.0.1', '255.254.0.0', 15), ...inet6()] };
	}
};
if (nodeModule.syncBuiltinESMExports) nodeModule.syncBuiltinESMExports();
