// SPDX-License-Identifier: Apache-2.0
// ts2.mjs - The TypeScript SDK, second version: legacy|auto|modern, then as in ts1.mjs.
import { Client, StreamableHTTPClientTransport, SSEClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { story } from "./story.mjs";

const [era, kind, at, ...args] = process.argv.slice(2);
const transport = {
	http: () => new StreamableHTTPClientTransport(new URL(at)),
	sse: () => new SSEClientTransport(new URL(at)),
	stdio: () => new StdioClientTransport({ command: at, args, stderr: "inherit" }),
}[kind]();
const mode = { legacy: "legacy", auto: "auto", modern: { pin: "2026-07-28" } }[era];
const client = new Client({ name: "ts2", version: "1" }, { versionNegotiation: { mode } });
await client.connect(transport);
await story(client);
await client.close();
