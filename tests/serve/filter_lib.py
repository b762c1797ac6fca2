# SPDX-License-Identifier: Apache-2.0
"""filter_lib.py - System call filters for a daemon to start under, as a service manager or another kernel would have them."""
import ctypes
import os
import struct

import pytest

needs_filters = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the filters are written for x86-64")


def install(program):
    """As preexec_fn: install a filter, [(code, jt, jf, k), ...] over struct seccomp_data, on this process."""
    data = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in program))

    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    p = Program(len(program), ctypes.addressof(data))
    libc = ctypes.CDLL(None)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(p), 0, 0):  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
        os._exit(98)
