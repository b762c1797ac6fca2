# SPDX-License-Identifier: Apache-2.0
"""javascript.py - JavaScript in node: the language, its own modules, and packages of npm."""
from case import Case, bash, javascript


def js(name, *steps, **more):
    return Case(name, *steps, needs=("node", *more.pop("needs", ())), **more)


CASES = [
    js("console.log", javascript("console.log('hello', {a: [1, 2]}, 3n)", out="hello { a: [ 1, 2 ] } 3n\n"), quick=True),
    js("console.error and table", javascript("console.error('bad'); console.table([{a: 1}])", err="bad", shows="│")),
    js("last expression", javascript("[1, 2, 3].map(x => x * 2)", result="[ 2, 4, 6 ]"), quick=True),
    js("variables and functions stay", javascript("const x = 41; let f = y => x + y; class A { hi() { return 'hi' } }"),
       javascript("console.log(f(1), new A().hi())", out="42 hi\n"), quick=True),
    js("const can be declared again", javascript("const data = [1]"), javascript("const data = [2]; data[0]", result="2")),
    js("top level await", javascript("const v = await new Promise(r => setTimeout(() => r('later'), 10)); v", result="'later'"), quick=True),
    js("promise all and async functions", javascript("""
            const sq = async n => n * n;
            console.log(await Promise.all([1, 2, 3].map(sq)), (await Promise.allSettled([Promise.reject(1)]))[0].status)""", out="[ 1, 4, 9 ] rejected\n")),
    js("timers and intervals",
       javascript("let n = 0; await new Promise(r => { const t = setInterval(() => { if (++n == 3) { clearInterval(t); r() } }, 5) }); n", result="3")),
    js("timers go on between calls", javascript("let ticks = 0; const timer = setInterval(() => ticks++, 5)"),
       javascript("while (ticks < 3) await new Promise(r => setTimeout(r, 5)); clearInterval(timer); ticks >= 3", result="true")),
    js("error shows the line", javascript("""
            function f(o) {
              return o.missing.name;
            }
            f({})""", code=1, error="TypeError: Cannot read properties of undefined (reading 'name')", traceback=":2"), quick=True),
    js("syntax error", javascript("const a = ;", code=1, error="SyntaxError")),
    js("reference error, and the state survives", javascript("let kept = 1; undefinedThing", code=1, error="ReferenceError: undefinedThing is not defined"),
       javascript("kept", result="1")),
    js("rejected promise", javascript("await Promise.reject(new Error('refused'))", code=1, error="Error: refused")),
    js("error with a cause", javascript("throw new Error('outer', {cause: new Error('inner')})", code=1, error="Error: outer", traceback="inner")),
    js("process.exit", javascript("console.log('a'); process.exit(3)", out="a\n", code=3)),
    js("json and fs", javascript("""
            const fs = require('fs');
            fs.writeFileSync('a.json', JSON.stringify({n: [1, 'é']}));
            JSON.parse(fs.readFileSync('a.json', 'utf8')).n[1]""", result="'é'", files={"a.json": '{"n":[1,"é"]}'}), quick=True),
    js("fs promises and directories", javascript("""
            const fsp = require('fs/promises');
            await fsp.mkdir('d/e', {recursive: true}); await fsp.writeFile('d/f.txt', 'x')
            console.log(await fsp.readdir('d'), (await fsp.stat('d/f.txt')).size)""", out="[ 'e', 'f.txt' ] 1\n")),
    js("import of node modules", javascript("""
            import path from 'node:path';
            import { readFileSync } from 'fs';
            path.join('a', '..', 'b')""", result="'b'")),
    js("require and dynamic import", javascript("const os = require('os'); const { EOL } = await import('os'); os.EOL === EOL", result="true")),
    js("own modules, both kinds", javascript("""
            const fs = require('fs'); fs.writeFileSync('m.js', 'exports.n = 1'); fs.writeFileSync('e.mjs', 'export const n = 2; export default () => 3')
            const m = require('./m.js'); const e = await import('./e.mjs'); [m.n, e.n, e.default()]""", result="[ 1, 2, 3 ]")),
    js("http server and fetch", javascript("""
            const http = require('http');
            const server = http.createServer((q, s) => { s.setHeader('content-type', 'application/json'); s.end(JSON.stringify({url: q.url})) });
            await new Promise(r => server.listen(8098, '127.0.0.1', r));
            const r = await fetch('http://127.0.0.1:8098/x?y=1'); console.log(r.status, (await r.json()).url); server.close()""", out="200 /x?y=1\n"),
       quick=True),
    js("fetch without network explains",
       javascript("await fetch('https://example.com')", code=1, error="TypeError: fetch failed", hint="egress")),
    js("buffers and typed arrays",
       javascript("Buffer.from('héllo').toString('base64') + ' ' + new Uint8Array([1, 2]).length + ' ' + new TextDecoder().decode(new Uint8Array([104, 105]))", result="'aMOpbGxv 2 hi'")),
    js("crypto",
       javascript("const c = require('crypto'); c.createHash('sha256').update('x').digest('hex').slice(0, 8) + ' ' + c.randomUUID().length", result="'2d711642 36'")),
    js("child_process", javascript("""
            const { execSync, spawnSync, spawn } = require('child_process');
            console.log(execSync('echo sync').toString().trim(), spawnSync('sh', ['-c', 'exit 3']).status);
            await new Promise(r => spawn('echo', ['inherited'], {stdio: 'inherit'}).on('close', r))""", out="sync 3\ninherited\n")),
    js("worker threads", javascript("""
            const { Worker } = require('worker_threads');
            await new Promise((ok, bad) => new Worker("require('worker_threads').parentPort.postMessage(6 * 7)", {eval: true}).on('message', ok).on('error', bad))""", result="42")),
    js("streams, zlib, events", javascript("""
            const zlib = require('zlib'), { pipeline } = require('stream/promises'), { Readable } = require('stream'), EventEmitter = require('events');
            const e = new EventEmitter(); let got; e.on('x', v => got = v); e.emit('x', 5);
            await pipeline(Readable.from(['abc']), zlib.createGzip(), require('fs').createWriteStream('a.gz'));
            console.log(got, zlib.gunzipSync(require('fs').readFileSync('a.gz')).toString())""", out="5 abc\n")),
    js("dates and Intl",
       javascript("console.log(new Date(Date.UTC(2024, 1, 29)).toISOString(), new Intl.NumberFormat('de-DE').format(1234.5))", out="2024-02-29T00:00:00.000Z 1.234,5\n")),
    js("regular expressions and destructuring",
       javascript("const { groups: { y } } = /(?<y>\\d{4})/.exec('in 2024'); const [a, ...rest] = [1, 2, 3]; `${y} ${a} ${rest}`", result="'2024 1 2,3'")),
    js("maps, sets, generators, spread",
       javascript("const m = new Map([['a', 1]]); function* g() { yield 1; yield 2 } console.log([...g(), ...new Set([2, 2])], m, {...{a: 1}, b: 2})", out="[ 1, 2, 2 ] Map(1) { 'a' => 1 } { a: 1, b: 2 }\n")),
    js("process and os", javascript("process.env.HOME + ' ' + process.cwd() + ' ' + process.platform", result="'/home/agent /workspace linux'")),
    js("assert and util",
       javascript("const assert = require('assert'); assert.deepStrictEqual({a: 1}, {a: 1}); require('util').inspect({a: {b: {c: {}}}}, {depth: 0})", result="'{ a: [Object] }'")),
    js("a script of node", javascript("require('fs').writeFileSync('s.js', 'console.log(process.argv.slice(2).join())')"),
       bash("node s.js a b; node -e 'console.log(6*7)'; node -p '1+1'", out="a,b\n42\n2\n")),
    js("node test runner",
       javascript("require('fs').writeFileSync('a.test.js', \"const t = require('node:test'); const a = require('assert'); t('adds', () => a.equal(1 + 1, 2))\")"),
       bash("node --test a.test.js", shows="pass 1")),
    js("text of classes and errors as results", javascript("class P { constructor() { this.x = 1 } } new P()", result="P { x: 1 }"),
       javascript("new Error('value').message", result="'value'")),
    js("large output is cut", javascript("for (let i = 0; i < 20000; i++) console.log('line', i)", truncated=True)),
    js("infinite loop is ended", javascript("while (true) {}", timeout=1, code=124, status="timeout", cause="wall"), javascript("1 + 1", result="2")),

    # ---- packages
    js("lodash", javascript("const _ = require('lodash'); _.chunk([1, 2, 3], 2)", result="[ [ 1, 2 ], [ 3 ] ]"), npm="lodash"),
    js("axios", javascript("""
            const http = require('http'); const s = http.createServer((q, r) => r.end('{"ok":true}')).listen(8097, '127.0.0.1'); const axios = require('axios');
            (await axios.get('http://127.0.0.1:8097/')).data.ok""", result="true"), npm="axios"),
    js("express", javascript("""
            const express = require('express'); const app = express(); app.use(express.json()); app.post('/sum', (q, r) => r.json({s: q.body.a + q.body.b}));
            const s = app.listen(8096, '127.0.0.1'); const r = await fetch('http://127.0.0.1:8096/sum', {method: 'POST', headers: {'content-type': 'application/json'}, body: '{"a":40,"b":2}'});
            (await r.json()).s""", result="42"), npm="express"),
    js("typescript compiles",
       javascript("const ts = require('typescript'); ts.transpileModule('const x: number = 1', {compilerOptions: {target: 'ES2020'}}).outputText.trim()",
                  result="'const x = 1;'"), npm="typescript@5"),
    js("tsc on the command line", bash("echo 'const n: number = 42; console.log(n)' > a.ts; tsc a.ts && node a.js", out="42\n"), npm="typescript@5"),
    js("zod", javascript("const { z } = require('zod'); z.object({n: z.number()}).safeParse({n: 'x'}).success", result="false"), npm="zod"),
    js("date-fns",
       javascript("const { addDays, format } = require('date-fns'); format(addDays(new Date(2024, 1, 28), 2), 'yyyy-MM-dd')", result="'2024-03-01'"),
       npm="date-fns"),
    # Of cheerio and uuid the last versions that work with node 18, which Debian has.
    js("cheerio", javascript("const cheerio = require('cheerio'); cheerio.load('<h1>Title</h1>')('h1').text()", result="'Title'"), npm="cheerio@1.0.0"),
    js("uuid and import syntax", javascript("""
            import { v4 } from 'uuid';
            v4().length""", result="36"), npm="uuid@11"),
    js("csv-parse and papaparse", javascript("const Papa = require('papaparse'); Papa.parse('a,b\\n1,2', {header: true}).data[0].b", result="'2'"),
       npm="papaparse"),
    js("jest runs a test",
       javascript("require('fs').writeFileSync('sum.test.js', \"test('adds', () => { expect(1 + 2).toBe(3) })\"); require('fs').writeFileSync('package.json', '{}')"),
       bash("jest --ci 2>&1", shows="1 passed"), npm="jest"),
    js("missing package names it", javascript("require('no-such-package-xyz')", code=1, error="Cannot find module 'no-such-package-xyz'")),
]
