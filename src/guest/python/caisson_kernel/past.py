# SPDX-License-Identifier: Apache-2.0
"""past - Executed code and its results, under the names that notebooks use.

`_`, `__` and `___` are always the last results. If executions are numbered (the host sends `count` for a notebook), there are also
In and Out, `_i`, `_ii`, `_iii` for the last inputs, and `_N`, `_iN` for those of cell N. A name that the user has assigned stays the
user's: the kernel replaces a name only while it still has the kernel's value.

As in IPython, results are held until there are KEPT newer ones; they use the sandbox's memory, whose limit applies.
"""
KEPT = 1000
_RESULTS, _INPUTS = ("_", "__", "___"), ("_i", "_ii", "_iii")


class Past:
    def __init__(self, namespace):
        self._namespace = namespace
        self._count = None
        self._put = {}  # name -> the value that the kernel put there
        self._in, self._out = [""], {}

    def _set(self, name, value):
        if name not in self._namespace or name in self._put and self._namespace[name] is self._put[name]:
            self._namespace[name] = self._put[name] = value

    def _drop(self, name):
        if name in self._put and self._namespace.get(name) is self._put.pop(name):
            del self._namespace[name]

    def _shift(self, names, value):
        """Put the newest first and move the others on."""
        values = [value] + [self._put.get(name) for name in names]
        for name, new, had in zip(names, values, [True] + [name in self._put for name in names]):
            if had:
                self._set(name, new)

    def begin(self, count, code):
        """An execution begins; count is its number, None without numbers."""
        self._count = count if isinstance(count, int) and not isinstance(count, bool) and 0 < count < 1 << 31 else None
        if self._count is None:
            return
        self._set("In", self._in)
        self._set("Out", self._out)
        del self._in[self._count:]  # the client has begun to count anew
        self._in.extend([""] * (self._count - len(self._in)))
        self._shift(_INPUTS, self._in[-1])
        self._in.append(code)
        self._set("_i%d" % self._count, code)
        self._drop("_i%d" % (self._count - KEPT))

    def result(self, value):
        self._shift(_RESULTS, value)
        if self._count is None:
            return
        self._out[self._count] = value
        self._set("_%d" % self._count, value)
        while len(self._out) > KEPT:
            oldest = next(iter(self._out))
            del self._out[oldest]
            self._drop("_%d" % oldest)
