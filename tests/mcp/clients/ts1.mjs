// SPDX-License-Identifier: Apache-2.0
// ts1.mjs - The TypeScript SDK, first version: http URL | sse URL | stdio COMMAND ARG...
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { story } from "./story.mjs";

const [kind, at, ...args] = process.argv.slice(2);
const transport = {
	http: () => new StreamableHTTPClientTransport(new URL(at)),
	sse: () => new SSEClientTransport(new URL(at)),
	stdio: () => new StdioClientTransport({ command: at, args, stderr: "inherit" }),
}[kind]();
const client = new Client({ name: "ts1", version: "1" });
await client.connect(transport);
await story(client);
await client.close();
