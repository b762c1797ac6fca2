# SPDX-License-Identifier: Apache-2.0
"""result - The result of a tool, as Python objects.

    structuredContent          unchanged (the tool's output schema describes it)
    text                       parsed when it is JSON, else a str
    image, audio               Blob: bytes with a `mime_type`; an image that is an execution's result is shown
    resource                   its text (Text: a str with `uri` and `mime_type`), or a Blob with a `uri`
    anything else              the dictionary itself

One item of content is returned as that item, several as a list, none as None. A result with isError raises an MCPError.
"""
import base64
import binascii
import json

from .rpc import MCPError


def _no_constant(name):
    raise ValueError(name)  # NaN and Infinity are not JSON


_loads = json.JSONDecoder(parse_constant=_no_constant).decode


class Blob(bytes):
    """Bytes of an image, a sound or a file, with its `mime_type` and, for a resource, its `uri`."""
    mime_type = "application/octet-stream"
    uri = None

    def __repr__(self):
        return "<%s, %d bytes>" % (self.mime_type, len(self))

    def _repr_mimebundle_(self, **_):
        data = {"text/plain": repr(self)}
        if self.mime_type in ("image/png", "image/jpeg", "image/gif"):
            data[self.mime_type] = base64.b64encode(self).decode()
        return data


class Text(str):
    """Text of a resource, with its `uri` and `mime_type`."""
    mime_type = "text/plain"
    uri = None


def _blob(data, mime, uri=None):
    try:
        made = Blob(base64.b64decode(str(data)))
    except (binascii.Error, ValueError):
        raise MCPError("the tool sent data that is not base64", code="upstream") from None
    if isinstance(mime, str):
        made.mime_type = mime
    made.uri = uri
    return made


def _item(item):
    if not isinstance(item, dict):
        return item
    kind = item.get("type")
    if kind == "text":
        text = str(item.get("text", ""))
        try:
            return _loads(text)
        except (ValueError, RecursionError):
            return text
    if kind in ("image", "audio"):
        return _blob(item.get("data", ""), item.get("mimeType"))
    inner = item.get("resource")
    if kind == "resource" and isinstance(inner, dict):
        if "blob" in inner:
            return _blob(inner["blob"], inner.get("mimeType"), inner.get("uri"))
        made = Text(inner.get("text", ""))
        made.uri = inner.get("uri")
        made.mime_type = inner.get("mimeType") or made.mime_type
        return made
    return item


def _error_text(content):
    texts = [str(item["text"]) for item in content if isinstance(item, dict) and item.get("type") == "text" and "text" in item]
    return "\n".join(texts).strip() or "the tool reported an error without a message"


def unwrap(result, server, tool):
    """The value of a `tools/call` result; `tool` as the server lists it."""
    if not isinstance(result, dict):
        return result
    content = result.get("content")
    content = content if isinstance(content, list) else []
    if result.get("isError"):
        raise MCPError("%s.%s: %s" % (server, tool.get("name"), _error_text(content)), code="tool", server=server,
                       tool=tool.get("name"), content=content)
    structured = result.get("structuredContent")
    if structured is not None:
        # A convention of server libraries for results that are not objects; the schema shows it.
        output = tool.get("outputSchema")
        if isinstance(output, dict) and output.get("x-fastmcp-wrap-result") and isinstance(structured, dict):
            return structured.get("result")
        return structured
    items = [_item(item) for item in content]
    return items[0] if len(items) == 1 else items or None
