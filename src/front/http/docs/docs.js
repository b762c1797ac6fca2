/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docs.js - The small documentation page: the operations of /openapi.json, each with a form to try it.
 *
 * Everything comes from the document, so a route that is added there is here. All text goes in as text
 * nodes: nothing that a sandbox printed is ever taken for markup. The token lives in its input field.
 */
"use strict";

const methods = ["get", "post", "put", "patch", "delete"];
let api = {};

/* An element with properties and children; strings become text nodes. */
function element(name, properties, ...children) {
  const node = Object.assign(document.createElement(name), properties || {});
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}

/* Text in which `this` is code. */
function prose(text) {
  return (text || "").split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part));
}

/* "$ref": "#/components/..." is followed, once per step. */
function resolve(node) {
  for (let i = 0; node && node.$ref && i < 8; i++)
    node = node.$ref.slice(2).split("/").reduce((at, key) => at && at[key], api);
  return node || {};
}

function typeOf(schema) {
  const types = [].concat(schema.type || []).filter((t) => t !== "null");
  return types[0] || "object";
}

/* ---- forms ------------------------------------------------------------------------------------ */

function describe(schema, required) {
  const notes = [typeOf(schema), required ? "required" : "optional"];
  if (schema.minimum !== undefined) notes.push(`${schema.minimum} to ${schema.maximum}`);
  if (schema.maxLength !== undefined) notes.push(`at most ${schema.maxLength} characters`);
  if (schema.default !== undefined) notes.push(`default ${JSON.stringify(schema.default)}`);
  return notes.join(", ");
}

/* One input; read() gives its value, or undefined when it was left empty. */
function field(id, name, schema, required, description, example) {
  const type = typeOf(schema);
  let input;
  if (type === "boolean") input = element("input", { type: "checkbox", id, checked: schema.default === true });
  else if (type === "integer" || type === "number")
    input = element("input", { type: "number", id, step: type === "integer" ? "1" : "any" });
  else if (type === "string" && (schema.maxLength || 1e9) <= 256) input = element("input", { type: "text", id });
  else input = element("textarea", { id, spellcheck: false });
  if (required && example !== undefined) input.value = typeof example === "string" ? example : JSON.stringify(example);
  else if (example !== undefined && type !== "boolean") input.placeholder = String(example);
  const read = () => {
    if (type === "boolean") return input.checked === (schema.default === true) ? undefined : input.checked;
    if (input.value === "") return undefined;
    if (type === "integer" || type === "number") return Number(input.value);
    return type === "string" ? input.value : JSON.parse(input.value);
  };
  const node = element("div", { className: "field" }, element("label", { htmlFor: id }, name), input,
    element("small", {}, ...prose(description), ` (${describe(schema, required)})`));
  return { name, read, node };
}

function formFields(id, operation) {
  const body = resolve(operation.requestBody);
  const schema = resolve(((body.content || {})["application/json"] || {}).schema);
  const needed = schema.required || [];
  return {
    params: (operation.parameters || []).map(resolve).map((p) => Object.assign(
      field(`${id}-${p.name}`, p.name, resolve(p.schema), p.required, p.description, p.example), { where: p.in })),
    members: Object.entries(schema.properties || {}).map(([name, s]) => field(`${id}-${name}`, name, resolve(s),
      needed.includes(name), resolve(s).description, (resolve(s).examples || [])[0])),
    hasBody: Boolean(operation.requestBody),
  };
}

/* ---- requests ------------------------------------------------------------------------------------ */

function buildRequest(method, path, fields) {
  const query = new URLSearchParams();
  for (const p of fields.params) {
    const value = p.read();
    if (value === undefined && p.where === "path") throw new Error(`${p.name} is needed`);
    if (p.where === "path") path = path.replace(`{${p.name}}`, encodeURIComponent(value));
    else if (value !== undefined) query.set(p.name, value);
  }
  const headers = {};
  const token = document.getElementById("token").value.trim();
  if (token) headers.Authorization = `Bearer ${token}`;
  let body;
  if (fields.hasBody) {
    headers["Content-Type"] = "application/json";
    const object = {};
    for (const m of fields.members) if (m.read() !== undefined) object[m.name] = m.read();
    body = JSON.stringify(object);
  }
  const search = query.toString();
  return { url: path + (search ? `?${search}` : ""), options: { method: method.toUpperCase(), headers, body } };
}

/* The same request for a shell; the token stays out of it. */
function curlLine(request) {
  const quote = (s) => `'${s.replace(/'/g, "'\\''")}'`;
  const words = ["curl", "-X", request.options.method, quote(location.origin + request.url)];
  if (request.options.headers.Authorization) words.push("-H", '"Authorization: Bearer $TOKEN"');
  if (request.options.body) words.push("-H", quote("Content-Type: application/json"), "-d", quote(request.options.body));
  return words.join(" ");
}

/* ---- answers ------------------------------------------------------------------------------------- */

function section(title, text) {
  return [element("p", {}, title), element("pre", {}, text)];
}

function images(result) {
  const bundles = (result.displays || []).map((d) => d.data).concat(result.result || []);
  return bundles.filter((b) => b && typeof b["image/png"] === "string")
    .map((b) => element("img", { alt: "display", src: `data:image/png;base64,${b["image/png"].replace(/[^A-Za-z0-9+/=]/g, "")}` }));
}

/* What people look for first in a result of an execution. */
function highlights(json) {
  const out = [];
  if (!json || typeof json !== "object") return out;
  for (const name of ["stdout", "stderr"]) if (json[name]) out.push(...section(name, json[name]));
  if (json.result && json.result["text/plain"]) out.push(...section("result", String(json.result["text/plain"])));
  if (json.error && Array.isArray(json.error.traceback)) out.push(...section("error", json.error.traceback.join("\n")));
  return out.concat(images(json));
}

async function readStream(response, out) {
  const pre = element("pre", {});
  out.append(element("p", {}, "events"), pre);
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    pre.append(decoder.decode(value, { stream: true }));
    pre.scrollTop = pre.scrollHeight;
  }
}

async function send(request, out) {
  const begin = performance.now();
  out.replaceChildren(element("p", {}, "Waiting…"));
  const response = await fetch(request.url, Object.assign({ credentials: "omit", cache: "no-store" }, request.options));
  const head = element("p", { className: response.ok ? "" : "bad" });
  const finish = () => {
    head.textContent = `${response.status} ${response.statusText}, ${(performance.now() - begin).toFixed(1)} ms, request ` +
      `${response.headers.get("X-Request-Id") || "without an id"}`;
  };
  finish();
  out.replaceChildren(head);
  const type = response.headers.get("Content-Type") || "";
  if (type.startsWith("text/event-stream")) {
    await readStream(response, out);
  } else {
    const text = await response.text();
    let json;
    try { json = JSON.parse(text); } catch { json = undefined; }
    out.append(...highlights(json));
    if (text) out.append(...section("body", json === undefined ? text : JSON.stringify(json, null, 2)));
  }
  finish();
  out.append(...section("as a command", curlLine(request)));
}

/* ---- the page ------------------------------------------------------------------------------------ */

function answerTable(operation) {
  const rows = Object.entries(operation.responses || {}).map(([status, r]) =>
    element("tr", {}, element("td", {}, element("code", {}, status)), element("td", {}, ...prose(resolve(r).description))));
  return element("details", {}, element("summary", {}, "Answers"),
    element("div", { className: "inside" }, element("table", {}, element("tbody", {}, ...rows))));
}

function renderOperation(method, path, operation) {
  const fields = formFields(operation.operationId, operation);
  const out = element("div", { className: "answer" });
  out.setAttribute("aria-live", "polite");
  const button = element("button", { type: "submit" }, "Send");
  const form = element("form", {}, ...fields.params.map((p) => p.node), ...fields.members.map((m) => m.node),
    element("div", {}, button));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      await send(buildRequest(method, path, fields), out);
    } catch (e) {
      out.replaceChildren(element("p", { className: "bad" }, `Not sent, or cut off: ${e.message}`));
    }
    button.disabled = false;
  });
  const upgrade = Boolean((operation.responses || {})["101"]);
  return element("details", { id: operation.operationId, open: operation.operationId === "execute" },
    element("summary", {}, element("span", { className: `method ${method}` }, method.toUpperCase()),
      element("span", { className: "path" }, path), operation.summary || ""),
    element("div", { className: "inside" }, element("p", {}, ...prose(operation.description)),
      upgrade ? null : form, out, answerTable(operation)));
}

function render() {
  const main = document.getElementById("operations");
  document.getElementById("version").textContent = api.info.version;
  document.getElementById("about").replaceChildren(`${api.info.summary || ""} `,
    element("a", { href: "/openapi.json" }, "/openapi.json"));
  for (const tag of api.tags || []) {
    const nodes = [];
    for (const [path, item] of Object.entries(api.paths))
      for (const method of methods)
        if (item[method] && (item[method].tags || []).includes(tag.name)) nodes.push(renderOperation(method, path, item[method]));
    if (nodes.length) main.append(element("h2", {}, tag.name, " ", element("small", {}, tag.description || "")), ...nodes);
  }
}

fetch("/openapi.json", { credentials: "omit" })
  .then((r) => (r.ok ? r.json() : Promise.reject(new Error(`${r.status} ${r.statusText}`))))
  .then((document_) => { api = document_; render(); })
  .catch((e) => { document.getElementById("about").textContent = `/openapi.json could not be read: ${e.message}`; });
