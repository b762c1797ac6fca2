#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""sbom.py - Write the bill of materials of a Debian package of this project, as SPDX 2.3 in JSON, to stdout.

Nothing in it is written down by hand: the files are those of the package, the libraries are those that its programs name (ELF) and
that its Static-Built-Using has, the packages of the build are those that dpkg-genbuildinfo found, told apart by the dependencies that
meson knows, and the files of npm are those that the build fetched. Everything is derived from these and from SOURCE_DATE_EPOCH: the
same package gives the same document.

usage: sbom.py --build MESON-BUILD-DIR --buildinfo FILE DEB
"""
import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
NOTHING = "NOASSERTION"
OURS = "SPDXRef-Package-caisson"
PACKAGES = r"([a-z0-9][a-z0-9.+-]*)(?::\w+)? \(= ([^)]+)\)"  # of Installed-Build-Depends and Static-Built-Using


def output(*argv):
    return subprocess.run([str(a) for a in argv], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout


def identifier(kind, name):
    """Letters, digits, '.' and '-' only; other characters as their number."""
    return "SPDXRef-%s-%s" % (kind, "".join(c if re.match(r"[A-Za-z0-9.]", c) else "-" if c == "-" else "-x%02x-" % ord(c) for c in name))


def checksums(data, *names):
    return [{"algorithm": name, "checksumValue": hashlib.new(name.lower(), data).hexdigest()} for name in names]


# ---- files -----------------------------------------------------------------------------------------


def file_of(name, data):
    programs = data.startswith(b"\x7fELF") or data.startswith(b"#!")
    return {"SPDXID": identifier("File", name.lstrip("./")), "fileName": name, "checksums": checksums(data, "SHA1", "SHA256"),
            "fileTypes": ["BINARY" if data.startswith(b"\x7fELF") else "SOURCE" if programs else "OTHER"],
            "licenseConcluded": NOTHING, "copyrightText": NOTHING}


def content(deb):
    """(name, data) of each file of a package."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE) as p:
        with tarfile.open(fileobj=p.stdout, mode="r|") as archive:
            for entry in archive:
                if entry.isfile():
                    yield entry.name, archive.extractfile(entry).read()
    if p.returncode:
        raise SystemExit("sbom.py: dpkg-deb cannot read %s" % deb)


def verification_code(files):
    sums = sorted(c["checksumValue"] for f in files for c in f["checksums"] if c["algorithm"] == "SHA1")
    return {"packageVerificationCodeValue": hashlib.sha1("".join(sums).encode()).hexdigest()}


def needed(data):
    """The names of the libraries that a program is linked with; none for a static one and for other files."""
    if not data.startswith(b"\x7fELF"):
        return []
    with tempfile.NamedTemporaryFile() as f:
        f.write(data)
        f.flush()
        return re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "--dynamic", "--wide", f.name))


# ---- packages --------------------------------------------------------------------------------------


def distribution():
    text = Path("/etc/os-release").read_text(encoding="utf-8")
    return dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.M))


def debian_package(name, version, arch):
    """A binary package, or with "source" for @arch a source package."""
    system = distribution()
    purl = "pkg:deb/%s/%s@%s?arch=%s&distro=%s-%s" % (system["ID"], quote(name), quote(version, safe=":~"), arch, system["ID"], system["VERSION_ID"])
    return {"SPDXID": identifier("Source" if arch == "source" else "Debian", name), "name": name, "versionInfo": version,
            "supplier": "Organization: %s" % system["NAME"], "downloadLocation": NOTHING, "filesAnalyzed": False, "licenseConcluded": NOTHING,
            "licenseDeclared": NOTHING, "copyrightText": NOTHING,
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]}


def owner(pattern):
    """The installed package that has a file, by its path or a pattern."""
    found = output("dpkg-query", "--search", pattern).splitlines()
    return sorted(line.split(":")[0].split(",")[0] for line in found if not line.startswith("diversion"))[0]


def installed(name):
    return debian_package(name, *output("dpkg-query", "--show", "--showformat", "${Version} ${Architecture}", name).split())


def development_packages(build):
    """The packages of the libraries that meson has found by pkg-config."""
    found = set()
    for d in json.loads(output("meson", "introspect", "--dependencies", build)):
        where = subprocess.run(["pkg-config", "--variable=pcfiledir", d["name"]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if where.returncode == 0:
            found.add(owner("%s/%s.pc" % (where.stdout.strip(), d["name"])))
    return found


def swagger(build):
    """(package, files) of Swagger UI; (None, []) for a build without it."""
    stamp = build / "src/swagger.stamp"
    text = stamp.read_text(encoding="utf-8").split() if stamp.exists() else ["none:"]
    if text[0] == "none:":
        return None, []
    name, version = text
    script = (ROOT / "tools/swagger.sh").read_text(encoding="utf-8")
    sha512, = re.findall(r"^sha512=([0-9a-f]{128})$", script, re.M)
    package = {"SPDXID": identifier("npm", name), "name": name, "versionInfo": version, "supplier": NOTHING,
               "downloadLocation": "https://registry.npmjs.org/%s/-/%s-%s.tgz" % (name, name, version), "filesAnalyzed": False,
               "checksums": [{"algorithm": "SHA512", "checksumValue": sha512}], "licenseConcluded": NOTHING, "licenseDeclared": "Apache-2.0",
               "copyrightText": NOTHING, "comment": "Files of it are compiled into caisson-front, without the names of their source maps.",
               "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "pkg:npm/%s@%s" % (name, version)}]}
    return package, [file_of("npm/%s/%s" % (name, f.name), f.read_bytes()) for f in sorted((build / "src/swagger").iterdir())]


# ---- the document ----------------------------------------------------------------------------------


class Document:
    def __init__(self):
        self.packages, self.files, self.relations = {}, {}, []

    def relate(self, one, kind, other):
        """@other: a package, a file, or the identifier of one that is there."""
        if isinstance(other, dict):
            (self.files if "fileName" in other else self.packages).setdefault(other["SPDXID"], other)
            other = other["SPDXID"]
        self.relations.append({"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other})


def describe(deb, build, buildinfo):
    control = dict(re.findall(r"^([A-Za-z-]+): (.*)$", output("dpkg-deb", "--field", deb), re.M))
    doc, files, libraries = Document(), [], set()
    for name, data in content(deb):
        files.append(file_of(name, data))
        libraries.update(needed(data))
    doc.relate("SPDXRef-DOCUMENT", "DESCRIBES", {
        "SPDXID": OURS, "name": control["Package"], "versionInfo": control["Version"], "packageFileName": deb.name,
        "supplier": "Organization: Caisson maintainers", "downloadLocation": NOTHING, "filesAnalyzed": True, "checksums": checksums(deb.read_bytes(), "SHA256"),
        "packageVerificationCode": verification_code(files), "licenseConcluded": "Apache-2.0", "licenseInfoFromFiles": [NOTHING],
        "licenseDeclared": "Apache-2.0", "copyrightText": NOTHING, "primaryPackagePurpose": "APPLICATION"})
    for f in files:
        doc.relate(OURS, "CONTAINS", f)
    for library in sorted(libraries):
        doc.relate(OURS, "DYNAMIC_LINK", installed(owner("*/" + library)))
    for name, version in re.findall(PACKAGES, control.get("Static-Built-Using", "")):
        doc.relate(OURS, "STATIC_LINK", debian_package(name, version, "source"))
    package, assets = swagger(build)
    if package:
        front, = (f["SPDXID"] for f in files if f["fileName"].endswith("/caisson-front"))
        doc.relate(OURS, "DEPENDS_ON", package)
        for asset in assets:
            doc.relate(front, "GENERATED_FROM", asset)
    ours = development_packages(build)
    for name, version in re.findall(PACKAGES, buildinfo.read_text(encoding="utf-8").partition("Installed-Build-Depends:")[2]):
        one = installed(name)
        if one["versionInfo"] != version:
            raise SystemExit("sbom.py: %s of the build was %s, and is %s now" % (name, version, one["versionInfo"]))
        doc.packages.setdefault(one["SPDXID"], one)
        doc.relate(one["SPDXID"], "BUILD_DEPENDENCY_OF" if name in ours else "BUILD_TOOL_OF", OURS)
    return control, doc


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--buildinfo", type=Path, required=True)
    parser.add_argument("deb", type=Path)
    args = parser.parse_args()
    control, doc = describe(args.deb, args.build, args.buildinfo)
    name = "%s-%s" % (control["Package"], control["Version"])
    digest = hashlib.sha256(args.deb.read_bytes()).hexdigest()
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
    json.dump({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
               "documentNamespace": "https://spdx.org/spdxdocs/%s-%s" % (name, digest),
               "creationInfo": {"created": created, "creators": ["Organization: Caisson maintainers", "Tool: caisson-sbom.py"]},
               "packages": list(doc.packages.values()), "files": list(doc.files.values()), "relationships": doc.relations}, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
