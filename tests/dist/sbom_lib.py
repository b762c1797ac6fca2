# SPDX-License-Identifier: Apache-2.0
"""sbom_lib.py - The rules of SPDX 2.3 that a document of tools/sbom.py could break, without a library."""
import hashlib
import re

ID = re.compile(r"SPDXRef-[A-Za-z0-9.-]+")
RELATIONS = {"DESCRIBES", "CONTAINS", "DYNAMIC_LINK", "STATIC_LINK", "DEPENDS_ON", "GENERATED_FROM", "BUILD_TOOL_OF", "BUILD_DEPENDENCY_OF"}
LENGTHS = {"SHA1": 40, "SHA256": 64, "SHA512": 128}


def check_document(d):
    """Fail where the document breaks a rule."""
    assert d["spdxVersion"] == "SPDX-2.3" and d["dataLicense"] == "CC0-1.0" and d["SPDXID"] == "SPDXRef-DOCUMENT"
    assert re.fullmatch(r"https://[^#\s]+", d["documentNamespace"]) and d["name"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", d["creationInfo"]["created"])
    assert all(re.match(r"(Person|Organization|Tool): \S", c) for c in d["creationInfo"]["creators"])
    elements = d["packages"] + d["files"]
    ids = [e["SPDXID"] for e in elements] + ["SPDXRef-DOCUMENT"]
    assert len(ids) == len(set(ids)) and all(ID.fullmatch(i) for i in ids)
    for e in elements:
        for c in e.get("checksums", []):
            assert re.fullmatch("[0-9a-f]{%d}" % LENGTHS[c["algorithm"]], c["checksumValue"]), e
    for f in d["files"]:
        assert "SHA1" in [c["algorithm"] for c in f["checksums"]] and f["fileName"].startswith(("./", "npm/")), f
    for p in d["packages"]:
        assert p["name"] and p["versionInfo"] and p["downloadLocation"], p
        for ref in p.get("externalRefs", []):
            assert ref["referenceCategory"] == "PACKAGE-MANAGER" and re.fullmatch(r"pkg:(deb/[a-z]+|npm)/\S+@\S+", ref["referenceLocator"]), ref
    for r in d["relationships"]:
        assert {r["spdxElementId"], r["relatedSpdxElement"]} <= set(ids) and r["relationshipType"] in RELATIONS, r
    check_contents(d)


def related(d, kind, one=None):
    """The names of packages, and of files, that are related so to @one, or to any."""
    names = {e["SPDXID"]: e.get("name") or e.get("fileName") for e in d["packages"] + d["files"]}
    return {names[r["relatedSpdxElement"]] for r in d["relationships"] if r["relationshipType"] == kind and one in (None, r["spdxElementId"])}


def check_contents(d):
    """A package whose files were analysed has each of them, and the code of them all."""
    files = {f["SPDXID"]: f for f in d["files"]}
    described = [r["relatedSpdxElement"] for r in d["relationships"] if r["relationshipType"] == "DESCRIBES" and r["spdxElementId"] == "SPDXRef-DOCUMENT"]
    assert len(described) == 1
    ours, = (p for p in d["packages"] if p["SPDXID"] == described[0])
    own = [r["relatedSpdxElement"] for r in d["relationships"] if r["relationshipType"] == "CONTAINS" and r["spdxElementId"] == ours["SPDXID"]]
    sums = sorted(c["checksumValue"] for i in own for c in files[i]["checksums"] if c["algorithm"] == "SHA1")
    code = hashlib.sha1("".join(sums).encode()).hexdigest()
    assert own and ours["filesAnalyzed"] and ours["packageVerificationCode"] == {"packageVerificationCodeValue": code}
