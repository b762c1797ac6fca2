# SPDX-License-Identifier: Apache-2.0
"""schema - A tool's JSON schema: checks of arguments, with messages for models, and the schema as a signature.

Wrong arguments get an error that a model can act on, before the call leaves the cell: every problem names the argument, the expected
value, the given value, and the description from the schema. Supported: type, enum, const, properties, required,
additionalProperties, patternProperties, items, prefixItems, the bounds of numbers, strings, lists and objects, pattern, uniqueItems,
allOf, anyOf, oneOf, not, and $ref within the schema. The server checks everything else (formats, conditions).

In one point this is stricter than JSON schema: an argument that `properties` does not name is refused unless the schema permits
others (additionalProperties, patternProperties). Many servers ignore such arguments, and a typing error would pass in silence.
"""
import difflib
import inspect
import keyword
import re

_DEPTH_MAX = 40
_PROBLEMS_MAX = 5
_TYPES = {
    "string": str, "boolean": bool, "object": dict, "array": (list, tuple), "null": type(None),
}
_ANNOTATIONS = {"string": str, "boolean": bool, "object": dict, "array": list, "integer": int, "number": float}


def is_type(value, kind):
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "integer":
        return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, _TYPES.get(kind, object))


def _name(value):
    for kind in ("null", "boolean", "integer", "number", "string", "array", "object"):
        if is_type(value, kind):
            return kind
    return type(value).__name__


def show(value, most=60):
    text = repr(value)
    return text if len(text) <= most else text[:most] + "..."


def _same(a, b):
    return a == b and isinstance(a, bool) == isinstance(b, bool)


# ---- simple schemas

_WORDS = {"title", "description", "default", "examples", "$schema", "$id"}  # keywords that do not restrict values
_SIMPLE = ("string", "boolean", "integer", "number")  # compared, not hashed: a schema may contain anything


def simple(schema):
    """({name: type}, required) of a schema that only lists arguments of simple types; None for any other schema."""
    if not isinstance(schema, dict) or schema.get("type") != "object" or schema.keys() - _WORDS - {
            "type", "properties", "required", "additionalProperties"} or schema.get("additionalProperties") not in (None, False):
        return None
    parts, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(parts, dict) or not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        return None
    for part in parts.values():
        if not isinstance(part, dict) or part.get("type") not in _SIMPLE or part.keys() - _WORDS - {"type"}:
            return None
    return {name: part["type"] for name, part in parts.items()}, required


def fits_simple(value, form):
    """Whether the arguments fit, without a message: problems() explains a misfit."""
    kinds, required = form
    for name, one in value.items():
        if name not in kinds or not is_type(one, kinds[name]):
            return False
    return all(name in value for name in required)


# ---- all schemas

class _Check:
    """The check of one value; `problems` has at most _PROBLEMS_MAX sentences."""

    def __init__(self, root):
        self.root = root
        self.problems = []

    def say(self, where, text, schema=None):
        note = schema.get("description") if isinstance(schema, dict) else None
        if isinstance(note, str) and note.strip():
            text += " (%s)" % " ".join(note.split())[:200]
        if len(self.problems) < _PROBLEMS_MAX:
            self.problems.append("%s %s" % (where, text))

    def follow(self, schema):
        for _ in range(_DEPTH_MAX):
            ref = schema.get("$ref") if isinstance(schema, dict) else None
            if not isinstance(ref, str) or not ref.startswith("#"):
                return schema
            target = self.root
            for word in ref[1:].split("/")[1:]:
                word = word.replace("~1", "/").replace("~0", "~")
                target = target.get(word) if isinstance(target, dict) else None
            schema = target
        return True

    def fits(self, value, schema, depth):
        """Whether a value fits, without a message: for schemas of which one or none must fit."""
        other = _Check(self.root)
        other.look("", value, schema, depth)
        return not other.problems

    def look(self, where, value, schema, depth=0):
        schema = self.follow(schema)
        if schema is False:
            self.say(where, "is not allowed")
        if not isinstance(schema, dict) or depth > _DEPTH_MAX:
            return
        if not self.kind(where, value, schema) or not self.choice(where, value, schema):
            return
        self.bounds(where, value, schema)
        if isinstance(value, dict):
            self.members(where, value, schema, depth)
        elif isinstance(value, (list, tuple)):
            self.items(where, value, schema, depth)
        self.combined(where, value, schema, depth)

    def kind(self, where, value, schema):
        kinds = schema.get("type")
        if isinstance(kinds, str):
            kinds = [kinds]
        if not isinstance(kinds, list) or not kinds or any(is_type(value, kind) for kind in kinds):
            return True
        self.say(where, "must be %s, not %s: %s" % (_one_of(kinds), _name(value), show(value)), schema)
        return False

    def choice(self, where, value, schema):
        allowed = schema.get("enum")
        if "const" in schema:
            allowed = [schema["const"]]
        if not isinstance(allowed, list) or any(_same(value, a) for a in allowed):
            return True
        near = difflib.get_close_matches(str(value), [a for a in allowed if isinstance(a, str)], 1)
        text = "must be %s, not %s" % (_one_of([show(a) for a in allowed[:30]]), show(value))
        self.say(where, text + ("; did you mean %r?" % near[0] if near else ""), schema)
        return False

    def bounds(self, where, value, schema):
        if isinstance(value, str):
            self.size(where, len(value), schema, "minLength", "maxLength", "characters")
            pattern = schema.get("pattern")
            if isinstance(pattern, str) and not _matches(pattern, value):
                self.say(where, "must match the pattern %s, not %s" % (pattern, show(value)), schema)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            self.number(where, value, schema)
        elif isinstance(value, (list, tuple)):
            self.size(where, len(value), schema, "minItems", "maxItems", "items")
            if schema.get("uniqueItems") is True and any(_same(a, b) for i, a in enumerate(value) for b in value[:i]):
                self.say(where, "must not have the same item twice", schema)
        elif isinstance(value, dict):
            self.size(where, len(value), schema, "minProperties", "maxProperties", "properties")

    def size(self, where, length, schema, least, most, noun):
        low, high = schema.get(least), schema.get(most)
        if isinstance(low, int) and length < low:
            self.say(where, "must have at least %d %s, not %d" % (low, noun, length), schema)
        if isinstance(high, int) and length > high:
            self.say(where, "must have at most %d %s, not %d" % (high, noun, length), schema)

    def number(self, where, value, schema):
        for key, bad, text in (("minimum", lambda v, b: v < b, "at least"), ("maximum", lambda v, b: v > b, "at most"),
                               ("exclusiveMinimum", lambda v, b: v <= b, "more than"),
                               ("exclusiveMaximum", lambda v, b: v >= b, "less than")):
            bound = schema.get(key)
            if is_type(bound, "number") and bad(value, bound):
                self.say(where, "must be %s %s, not %s" % (text, bound, value), schema)
        step = schema.get("multipleOf")
        if is_type(step, "number") and step > 0 and abs(value / step - round(value / step)) > 1e-9:
            self.say(where, "must be a multiple of %s, not %s" % (step, value), schema)

    def members(self, where, value, schema, depth):
        known = schema.get("properties")
        known = known if isinstance(known, dict) else {}
        for name in _names(schema.get("required")):
            if name not in value:
                expected = self.follow(known.get(name, True))
                kind = expected.get("type") if isinstance(expected, dict) else None
                self.say(_inner(where, name), "is required" + (": %s" % _one_of(kind) if kind else ""), expected)
        patterns = schema.get("patternProperties")
        patterns = patterns if isinstance(patterns, dict) else {}
        rest = schema.get("additionalProperties", not (known and depth == 0 and not patterns))
        for name, item in value.items():
            fitting = [s for pattern, s in patterns.items() if _matches(pattern, str(name))]
            if name in known:
                fitting.append(known[name])
            for one in fitting:
                self.look(_inner(where, name), item, one, depth + 1)
            if fitting:
                continue
            if rest is False:
                near = difflib.get_close_matches(str(name), list(known), 1)
                self.say(_inner(where, name), "is unknown; %s" % (
                    "did you mean %r?" % near[0] if near else "known are: %s" % (", ".join(map(repr, known)) or "none")))
            else:
                self.look(_inner(where, name), item, rest, depth + 1)

    def items(self, where, value, schema, depth):
        first = schema.get("prefixItems")
        first = first if isinstance(first, list) else []
        for i, item in enumerate(value):
            one = first[i] if i < len(first) else schema.get("items", True)
            self.look("%s[%d]" % (where, i), item, one, depth + 1)
            if len(self.problems) >= _PROBLEMS_MAX:
                return

    def combined(self, where, value, schema, depth):
        for one in _list(schema.get("allOf")):
            self.look(where, value, one, depth + 1)
        for key in ("anyOf", "oneOf"):
            choices = _list(schema.get(key))
            fitting = sum(self.fits(value, one, depth + 1) for one in choices)
            if choices and not fitting:
                self.none_fits(where, value, choices, schema, depth)
            elif key == "oneOf" and fitting > 1:
                self.say(where, "fits %d of the schemas in oneOf, and must fit one" % fitting, schema)
        if isinstance(schema.get("not"), dict) and self.fits(value, schema["not"], depth + 1):
            self.say(where, "must not be %s" % show(value), schema)

    def none_fits(self, where, value, choices, schema, depth):
        kinds = [k for one in map(self.follow, choices) if isinstance(one, dict) for k in _names(one.get("type"), True)]
        near = [one for one in map(self.follow, choices) if isinstance(one, dict) and
                any(is_type(value, k) for k in _names(one.get("type"), True))]
        if len(near) == 1:
            self.look(where, value, near[0], depth + 1)  # only one can be meant: use its own message
        else:
            self.say(where, "must be %s, not %s: %s" % (
                _one_of(kinds) if kinds else "one of %d things" % len(choices), _name(value), show(value)), schema)


def _list(value):
    return value if isinstance(value, list) else []


def _names(value, single=False):
    if single and isinstance(value, str):
        return [value]
    return [v for v in _list(value) if isinstance(v, str)]


def _one_of(words):
    words = [words] if isinstance(words, str) else list(dict.fromkeys(map(str, words)))
    return words[0] if len(words) == 1 else "one of " + ", ".join(words)


def _inner(where, name):
    return "argument %r" % name if not where else "%s.%s" % (where, name)


def _matches(pattern, text):
    try:
        return re.search(pattern, text) is not None
    except (re.error, RecursionError):  # another dialect: the server checks it
        return True


def problems(arguments, schema):
    """The problems of a tool's arguments: sentences; empty if they fit."""
    check = _Check(schema if isinstance(schema, dict) else {})
    check.look("", arguments, schema)
    return check.problems


# ---- as a signature

def parameters(schema):
    """[(name in Python, name in the schema, its schema, whether it is required)], required ones first."""
    known = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(known, dict):
        return []
    required = set(_names(schema.get("required")))
    taken, found = set(known), []
    for name in sorted(known, key=lambda n: n not in required):  # stable: otherwise in the order of the schema
        own = name
        if not name.isidentifier() or keyword.iskeyword(name):
            own = re.sub(r"\W", "_", name)
            own = "_" + own if own[:1].isdigit() else own
            own = own + "_" if keyword.iskeyword(own) else own
            if not own or own in taken:
                continue
            taken.add(own)
        found.append((own, name, known[name], name in required))
    return found


def annotation(schema):
    kind = schema.get("type") if isinstance(schema, dict) else None
    return _ANNOTATIONS.get(kind, inspect.Parameter.empty) if isinstance(kind, str) else inspect.Parameter.empty


def signature(schema):
    made = []
    for own, _, part, required in parameters(schema):
        default = inspect.Parameter.empty if required else part.get("default") if isinstance(part, dict) else None
        made.append(inspect.Parameter(own, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation(part)))
    return inspect.Signature(made)


def describe(name, part, required):
    """A line of a docstring: one argument."""
    words = []
    if isinstance(part, dict):
        kinds = _names(part.get("type"), True) or [k for one in _list(part.get("anyOf")) + _list(part.get("oneOf"))
                                                   if isinstance(one, dict) for k in _names(one.get("type"), True)]
        if kinds:
            words.append(" or ".join(kinds))
        if isinstance(part.get("enum"), list):
            words.append("one of " + ", ".join(show(v) for v in part["enum"][:20]))
        words += ["%s %s" % (key, part[key]) for key in ("minimum", "maximum", "minLength", "maxLength", "pattern", "format")
                  if key in part]
        if "default" in part:
            words.append("default %s" % show(part["default"]))
    if not required:
        words.append("optional")
    line = "    %s" % name + (" (%s)" % ", ".join(words) if words else "")
    note = part.get("description") if isinstance(part, dict) else None
    return line + (": " + " ".join(str(note).split()) if note else "")
