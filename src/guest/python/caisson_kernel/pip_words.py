# SPDX-License-Identifier: Apache-2.0
"""pip_words.py - The requirements that the words after `pip install` name: for the kernel, and for the pip of a shell, of which
this module is a part (src/guest/tools/pip_install.py, by tools/inline-py.py)."""
import os
import re

# Options without effect here: there is one place, and it has the newest requested versions.
IDLE = {"-q", "-qq", "--quiet", "-U", "--upgrade", "--user", "--no-cache-dir", "--disable-pip-version-check", "--no-input",
        "--prefer-binary", "--break-system-packages", "-v", "--verbose", "--system", "--no-warn-script-location",
        "--force-reinstall", "-I", "--ignore-installed", "--no-color"}
IDLE_WITH_VALUE = {"--timeout", "--retries", "--cache-dir", "--progress-bar", "--root-user-action", "--log"}
LOCAL = {"-e", "--editable", "--no-index", "-f", "--find-links", "-h", "--help"}
UNSUPPORTED = "%s is not supported here; the daemon installs, from the operator's index"


class Refused(Exception):
    """The daemon does not install this; the text says why."""


class Local(Exception):
    """Only the image's own pip can do it."""


def applies(marker, line):
    """Whether `; marker` of a line is true here."""
    try:
        from pip._vendor.packaging.markers import Marker
    except ImportError:
        raise Refused("'%s': the marker after ';' cannot be evaluated; write the line without it" % line)
    return Marker(marker).evaluate()


def lines(path, depth=0):
    """The requirements of a file."""
    with open(path, encoding="utf-8") as f:
        text = f.read().replace("\\\n", " ")
    for line in text.splitlines():
        line = re.sub(r"(^|\s)#.*", "", line).strip()
        nested = re.fullmatch(r"(?:-r|--requirement)[ =]*(\S+)", line)
        if nested and depth < 10:
            yield from lines(os.path.join(os.path.dirname(path), nested.group(1)), depth + 1)
        elif line.startswith("-") or " --" in line:
            raise Refused("%s: " % path + UNSUPPORTED % ("'%s'" % line))
        elif line:
            yield line


def requirement(text):
    """A requirement that the daemon understands, or None if its marker is false."""
    if "://" in text or " @ " in text or text.startswith((".", "/", "~")) or re.search(r"\.(whl|zip|tar\.\w+|tgz)$", text):
        raise Local(UNSUPPORTED % ("'%s'" % text))
    name, mark, marker = text.partition(";")
    return None if mark and not applies(marker.strip(), text) else name.strip()


def requirements(args):
    """(requirements, quiet) of the words after `install`; Local: nothing is named."""
    found, words, quiet = [], iter(args), False
    for word in words:
        option, mark, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if option in LOCAL:
            raise Local(UNSUPPORTED % option)
        if option in IDLE:
            quiet = quiet or option in ("-q", "-qq", "--quiet")
        elif option in IDLE_WITH_VALUE:
            mark or next(words, None)
        elif option in ("-r", "--requirement"):
            found.extend(map(requirement, lines(value or next(words, ""))))
        elif word.startswith("-r") and not word.startswith("--"):
            found.extend(map(requirement, lines(word[2:])))
        elif word.startswith("-"):
            raise Refused(UNSUPPORTED % option)
        else:
            found.append(requirement(word))
    if not found:
        raise Local("name at least one package")
    return [r for r in found if r], quiet


def upgrades(args):
    """Whether the words ask for the newest versions."""
    return bool({"-U", "--upgrade"}.intersection(args))
