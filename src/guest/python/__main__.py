# SPDX-License-Identifier: Apache-2.0
"""__main__ - The two ways in: a kernel of its own, or (`zygote DIR`) the warm process that forks kernels."""
import sys


def main(argv):
    if not argv:
        from caisson_kernel import kernel
        kernel.main()
    elif argv[0] == "zygote" and len(argv) == 2:
        from caisson_kernel import zygote
        zygote.main(argv[1])
    else:
        sys.exit("usage: kernel.pyz [zygote DIR]")


if __name__ == "__main__":
    main(sys.argv[1:])
