// SPDX-License-Identifier: Apache-2.0
// lab.mjs - JupyterLab in a headless browser: run a cell, see a plot, interrupt, restart.
// usage: node lab.mjs URL CHROMIUM PROFILE SCREENSHOT     One line of JSON with what was seen.
import { createRequire } from 'module';
const require = createRequire(import.meta.url);
const { chromium } = require('playwright-core');

const [, , url, executablePath, profile, picture] = process.argv;
const browser = await chromium.launchPersistentContext(profile, {
	executablePath,
	headless: true,
	viewport: { width: 1200, height: 900 },
	args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
const seen = {};
const page = browser.pages()[0] || (await browser.newPage());
const wait = { timeout: 60000 };

// The page asks for a subprotocol that jupyter-server does not select, and connects anew without: it is there when the kernel has answered.
const connected = new Promise((resolve) => {
	page.on('websocket', (socket) => socket.on('framereceived', ({ payload }) => String(payload).includes('kernel_info_reply') && resolve()));
});

const cell = (n) => page.locator('.jp-Notebook .jp-CodeCell').nth(n);
const run = async (n) => {
	await cell(n).locator('.jp-InputArea-editor').click(wait);
	await page.keyboard.press('Shift+Enter');
};
const kernelMenu = async (item) => {
	await page.locator('.lm-MenuBar-itemLabel:text-is("Kernel")').click(wait);
	await page.locator(`.lm-Menu-itemLabel:text-is("${item}")`).first().click(wait);
};
const prompt = (n, text) => cell(n).locator(`.jp-InputPrompt:has-text("${text}")`).waitFor(wait);

try {
	await page.goto(url, { waitUntil: 'load', ...wait });
	await page.locator('.jp-Notebook .jp-CodeCell').first().waitFor(wait);
	await connected;
	await page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').first().waitFor(wait);
	await run(0);
	const image = cell(0).locator('.jp-OutputArea-output img');
	await image.waitFor(wait);
	seen.text = await cell(0).locator('.jp-OutputArea-output pre').first().innerText();
	seen.plot = await image.evaluate((i) => i.decode().then(() => ({ width: i.naturalWidth, height: i.naturalHeight })));
	await image.scrollIntoViewIfNeeded();
	await image.screenshot({ path: picture });
	await run(1);
	await cell(1).locator('.jp-OutputArea-output:has-text("going")').waitFor(wait);
	await kernelMenu('Interrupt Kernel');
	await cell(1).locator('.jp-OutputArea-output:has-text("KeyboardInterrupt")').waitFor(wait);
	seen.interrupted = true;
	await run(2);
	await cell(2).locator('.jp-OutputArea-output:has-text("kept")').waitFor(wait);
	seen.kept = true;
	await kernelMenu('Restart Kernel…');
	await page.locator('.jp-Dialog button.jp-mod-warn, .jp-Dialog button.jp-mod-accept').last().click(wait);
	await page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').first().waitFor(wait);
	await run(2);
	await cell(2).locator('.jp-OutputArea-output:has-text("NameError")').waitFor(wait);
	seen.restarted = true;
	await prompt(2, '[1]');
	seen.counted = true;
} catch (e) {
	seen.error = String(e);
	await page.screenshot({ path: picture + '.failed.png' });
}
console.log(JSON.stringify(seen));
await browser.close();
process.exit(0);
