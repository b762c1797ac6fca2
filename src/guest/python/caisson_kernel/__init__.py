# SPDX-License-Identifier: Apache-2.0
"""caisson_kernel - A Python interpreter that keeps its state and exchanges JSON lines with its host.

One process, one namespace (`__main__`), one asyncio loop. The host writes `execute` messages on a pipe, the kernel runs
them one at a time and answers on another pipe; all text goes to descriptors 1 and 2 and never through the channel.

    kernel       start, wait for work, never end         control     the two pipes, and which thread reads and writes them
    execution    one execution from code to outcome      source      text -> code objects, and the lines for tracebacks
    aio          the loop that outlives executions       interrupts  where SIGINT may become KeyboardInterrupt
    traceback_   what the user sees of an exception      wire        messages as bytes, with their limits
    streams      sys.stdout and sys.stderr               stdin_      input(), getpass() and sys.stdin
    reseed       no two forks share a random stream      codemode    the agent's tools, in sandboxes that have some

Nothing but the standard library is used, and Python 3.8 is enough.
"""
