# SPDX-License-Identifier: Apache-2.0
"""reseed - After a fork from the warm process: no two kernels share a stream of random numbers.

Random numbers of the operating system (os.urandom, secrets, uuid4, numpy's default_rng()) are correct without help. Generators
that were seeded once at import are not: forks would continue the same stream. The process id does not distinguish kernels,
because they have the same one in their own pid namespaces. So every loaded module with such state gets new entropy here.
"""
import os
import sys

warm_pid = 0  # the pid of the process that forks kernels; set by kernel.prepare()


def _random(module):
    module.seed()


def _numpy_random(module):
    module.seed()  # the legacy global generator; Generator objects begin with fresh entropy


def _uuid(module):
    # uuid1(): a node of our own (RFC 4122 4.5: the multicast bit marks it as random), and not libuuid's clock sequence,
    # whose state lives in the C library where it cannot be reset.
    module._node = int.from_bytes(os.urandom(6), "big") | (1 << 40)
    module._last_timestamp = None
    if hasattr(module, "_generate_time_safe"):
        module._generate_time_safe = None


def _tempfile(module):
    module._name_sequence = None
    module.tempdir = None  # determined again with this process's environment


def _ssl(module):
    # OpenSSL detects a fork by its process id and then does this itself. It costs a millisecond, so do it only if the id is the same.
    if os.getpid() == warm_pid:
        module.RAND_add(os.urandom(32), 32.0)


def _multiprocessing_process(module):
    process = module.current_process()
    process.authkey = os.urandom(32)
    process._config.pop("tempdir", None)


def _torch(module):
    module.seed()


_HOLDERS = (
    ("random", _random),
    ("numpy.random", _numpy_random),
    ("uuid", _uuid),
    ("tempfile", _tempfile),
    ("ssl", _ssl),
    ("multiprocessing.process", _multiprocessing_process),
    ("torch", _torch),
)


def after_fork():
    """Give every loaded module with random state a state of its own. Returns [(module, error text)] of the failed ones."""
    failed = []
    for name, renew in _HOLDERS:
        module = sys.modules.get(name)
        if module is None:
            continue
        try:
            renew(module)
        except Exception as error:
            failed.append((name, "%s: %s" % (type(error).__name__, error)))
    return failed
