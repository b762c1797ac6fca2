// SPDX-License-Identifier: Apache-2.0
// story.mjs - What a host does with a server: look at the tools, run code twice in a session, read a file that it made.
export async function story(client) {
	const { tools } = await client.listTools();
	const session_id = "story-" + Math.random().toString(16).slice(2, 10);
	const run = (code, language = "python") => client.callTool({ name: "execute_code", arguments: { session_id, language, code } });
	const first = await run("x = 20; open('a.csv', 'w').write('1,2')");
	const second = await run("print('from', 'a cell'); x * 2 + 2");
	const link = first.content.find((b) => b.type === "resource_link");
	const read = await client.readResource({ uri: link.uri });
	const raised = await run("1 / 0");
	const wrong = await run("1", "cobol");
	console.log(JSON.stringify({
		tools: tools.map((t) => t.name),
		text: second.content[0].text,
		structured: second.structuredContent,
		file: read.contents[0].text,
		raised: [raised.isError ?? false, raised.content[0].text],
		wrong: wrong.isError,
	}));
}
