# SPDX-License-Identifier: Apache-2.0
"""test_mount.py - Files of the host in a cell: --mount, --image, and their owners on both sides."""
import os
import stat
import subprocess
import sys

import pytest

from integ_lib import USER, as_user, copy_programs, copy_tree, needs_root, run, str_or_bytes


def snapshot(root):
    """Every file below root with all that a write would change."""
    seen = {}
    for where, dirs, files in os.walk(root):
        for name in ["."] + dirs + files:
            path = os.path.join(where, name)
            st = os.lstat(path)
            content = b""
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    content = f.read()
            seen[path] = (st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns, st.st_nlink, content)
    return seen


@pytest.fixture
def data(tmp_path):
    d = tmp_path / "data"
    (d / "sub").mkdir(parents=True)
    (d / "file").write_text("content")
    (d / "sub" / "deep").write_text("deep content")
    return d


# ---- read-only --------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [":ro", ""])
def test_read_only_is_the_default_and_refuses_every_change(data, suffix):
    before = snapshot(data)
    r = run("run", "--mount", "%s:/data%s" % (data, suffix),
            "import os\n"
            "print(open('/data/file').read(), open('/data/sub/deep').read())\n"
            "tries = [lambda: open('/data/new', 'w'), lambda: open('/data/file', 'a'), lambda: os.remove('/data/file'),\n"
            "  lambda: os.mkdir('/data/d'), lambda: os.rename('/data/file', '/data/f2'), lambda: os.chmod('/data/file', 0),\n"
            "  lambda: os.utime('/data/file'), lambda: os.truncate('/data/file', 0), lambda: os.link('/data/file', '/data/l'),\n"
            "  lambda: os.symlink('x', '/data/s'), lambda: open('/data/sub/deep', 'r+')]\n"
            "for t in tries:\n"
            "  try: t(); print('changed it')\n"
            "  except OSError as e: print(e.errno)\n")
    lines = r.out.decode().splitlines()
    assert lines[0] == "content deep content" and len(lines) == 12
    assert {"30"} <= set(lines[1:]) <= {"30", "13"}, lines  # EROFS; EACCES where the kernel looks at the file first
    assert snapshot(data) == before


def test_relative_source_and_several_mounts(data):
    r = run("exec", "-v", "data:/a", "-v", "./data/sub:/b/c/d", "-v", "data/file:/workspace/f", "--",
            "cat", "/a/file", "/b/c/d/deep", "/workspace/f", cwd=data.parent)
    assert (r.code, r.out) == (0, b"contentdeep contentcontent")


def test_source_with_colons_spaces_and_bytes(tmp_path):
    odd = bytes(tmp_path) + b"/a:b c\n\xff:ro"
    os.mkdir(odd)
    with open(odd + b"/f", "w") as f:
        f.write("odd")
    r = run("exec", "--mount", odd + b":/data:ro", "--", "cat", "/data/f")
    assert (r.code, r.out) == (0, b"odd")


def test_mount_of_one_file_makes_the_directories_above_it(data):
    """As for a directory."""
    r = run("exec", "--mount", "%s:/srv/made/for/it:ro" % (data / "file"), "--", "cat", "/srv/made/for/it")
    assert (r.code, r.out) == (0, b"content"), r


def test_mount_over_a_directory_of_the_image(data):
    r = run("run", "--mount", "%s:/usr/share:ro" % data, "import os; print(sorted(os.listdir('/usr/share')))")
    assert (r.code, r.out) == (0, b"['file', 'sub']\n")


def test_mount_is_not_visible_to_the_next_cell(data):
    assert run("exec", "--mount", "%s:/data:rw" % data, "--", "touch", "/data/x").code == 0
    assert run("exec", "--", "ls", "/data").code == 2


def test_script_from_a_directory_that_is_mounted_as_workspace(data):
    """The most natural use of /workspace: my project is there, and I run a file of it."""
    (data / "script.py").write_text("import os; print(sorted(os.listdir('.')))\n")
    before = snapshot(data)
    for mode in ("ro", "rw"):
        r = run("run", "--mount", "%s:/workspace:%s" % (data, mode), data / "script.py")
        assert (r.code, r.out) == (0, b"['file', 'script.py', 'sub']\n"), r
    assert snapshot(data) == before


def test_running_a_script_adds_nothing_to_a_mounted_workspace(data, tmp_path):
    (tmp_path / "other.py").write_text("print('ran')\n")
    before = snapshot(data)
    r = run("run", "--mount", "%s:/workspace:rw" % data, tmp_path / "other.py")
    assert (r.code, r.out) == (0, b"ran\n"), r
    assert snapshot(data) == before


# ---- writable ----------------------------------------------------------------------------------------


def test_files_made_in_the_cell_belong_to_the_caller_on_the_host(data):
    r = run("run", "--mount", "%s:/data:rw" % data,
            "import os\n"
            "open('/data/new', 'w').write('from the cell')\n"
            "os.mkdir('/data/dir'); os.symlink('new', '/data/link')\n"
            "open('/data/file', 'a').write(' and more')\n"
            "st = os.stat('/data/new'); print(st.st_uid, st.st_gid, os.stat('/data/file').st_uid)")
    assert (r.code, r.out) == (0, b"1000 1000 1000\n"), r
    assert (data / "new").read_text() == "from the cell" and (data / "file").read_text() == "content and more"
    for name in ("new", "dir", "link"):
        st = os.lstat(data / name)
        assert (st.st_uid, st.st_gid) == (os.geteuid(), os.getegid()), name


def test_writable_file(data):
    r = run("exec", "--mount", "%s:/f:rw" % (data / "file"), "--", "sh", "-c", "echo new > /f; cat /f; rm /f")
    assert r.out == b"new\n" and r.code == 1  # a mount point cannot be removed
    assert (data / "file").read_text() == "new\n"


@needs_root
def test_files_of_others_stay_theirs(data):
    os.chown(data / "file", 12345, 12345)
    (data / "file").chmod(0o600)
    r = run("run", "--mount", "%s:/data:rw" % data,
            "import os; print(os.stat('/data/file').st_uid)\nfor m in 'ra':\n"
            "  try: open('/data/file', m)\n  except OSError as e: print(e.errno)\n")
    # Somebody else's: an id without a name in the cell, and no permission (13, or 75: no id to write it with).
    assert r.out.split()[0] == b"65534" and set(r.out.split()[1:]) <= {b"13", b"75"} and len(r.out.split()) == 3, r


@needs_root
def test_no_setuid_program_and_no_device_through_a_mount(data):
    os.chmod(data / "file", 0o4755)
    (data / "file").write_text("#!/bin/sh\nid -u\n")
    os.chmod(data / "file", 0o4755)
    os.mknod(data / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    os.chmod(data / "null", 0o666)
    r = run("run", "--lang", "bash", "--mount", "%s:/data:rw" % data, "/data/file; cat /data/null; grep ' /data ' /proc/self/mountinfo")
    assert r.out.startswith(b"1000\n") and b"Permission denied" in r.err
    assert b"nosuid" in r.out and b"nodev" in r.out


def test_link_in_a_mount_leads_nowhere_on_the_host(data, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (data / "up").symlink_to("../secret")
    (data / "abs").symlink_to(tmp_path / "secret")
    r = run("exec", "--mount", "%s:/data:rw" % data, "--", "cat", "/data/up", "/data/abs")
    assert (r.code, r.out) == (1, b"")


def test_workdir(data):
    r = run("exec", "--mount", "%s:/data" % data, "--workdir", "/data/sub", "--", "sh", "-c", "pwd; cat deep")
    assert (r.code, r.out) == (0, b"/data/sub\ndeep content")
    assert run("exec", "--workdir", "/", "--", "pwd").out == b"/\n"


# ---- images ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    root = copy_programs(tmp_path_factory.mktemp("image"), "sh", "cat", "id", "ls", "rm", "mkdir", "env")
    (root / "etc" / "motd").write_text("original\n")
    (root / "etc" / "motd").chmod(0o666)
    (root / "open").mkdir()
    (root / "open").chmod(0o1777)
    (root / "open" / "keep").write_text("kept\n")
    (root / "open" / "keep").chmod(0o666)
    root.chmod(0o755)
    return root


def in_image(image, *argv):
    return run("exec", "--image", "dir:%s" % image, "--", *map(str_or_bytes, argv))


def test_image_is_the_root(image):
    r = in_image(image, "/bin/sh", "-c", "cat /etc/motd; id -u; pwd; ls /")
    assert r.code == 0, r
    lines = r.out.decode().split()
    assert lines[:3] == ["original", "1000", "/workspace"]
    assert {"bin", "dev", "etc", "home", "open", "proc", "tmp", "workspace"} <= set(lines[3:])
    assert "usr" not in lines or not (image / "usr").exists() or in_image(image, "/bin/ls", "/usr").out.split() == \
        [n.encode() for n in sorted(os.listdir(image / "usr"))]  # not the host's


def test_relative_image_path(image):
    r = run("exec", "--image", "dir:" + image.name, "--", "/bin/cat", "/etc/motd", cwd=image.parent)
    assert (r.code, r.out) == (0, b"original\n")


def test_writes_do_not_touch_the_image(image):
    before = snapshot(image)
    r = in_image(image, "/bin/sh", "-c",
                 "echo changed > /etc/motd && cat /etc/motd && echo x > /workspace/f && echo x > /tmp/f && echo x > /home/agent/f &&"
                 "echo y > /open/new && echo changed > /open/keep && mkdir /open/dir && cat /open/keep && ls /open")
    assert (r.code, r.out) == (0, b"changed\nchanged\ndir\nkeep\nnew\n"), r
    assert snapshot(image) == before
    assert in_image(image, "/bin/cat", "/etc/motd", "/open/keep").out == b"original\nkept\n"


def test_deleting_does_not_touch_the_image(image):
    (image / "open" / "mine").write_text("x")
    os.chmod(image / "open" / "mine", 0o666)
    os.chown(image / "open" / "mine", *((1000, 1000) if os.geteuid() == 0 else (-1, -1)))
    before = snapshot(image)
    r = in_image(image, "/bin/sh", "-c", "rm /open/mine && ls /open")
    assert (r.code, r.out) == (0, b"keep\n"), r
    assert snapshot(image) == before


def test_disk_limit_holds_in_an_image(image):
    r = run("exec", "--json", "--disk", "2M", "--image", "dir:%s" % image, "--", "/bin/sh", "-c",
            "cat /dev/zero > /tmp/f")
    d = r.json
    assert r.code != 0 and (d["status"], d["cause"]["kind"], d["cause"]["limit"]) == ("limit", "disk", 2 << 20), d


def test_hostile_links_in_an_image_lead_nowhere(tmp_path):
    """dev, proc, tmp and workspace are made by us in whatever the image brings."""
    target = tmp_path / "target"
    target.mkdir()
    before = snapshot(target)
    for name in ("workspace", "tmp", "dev", "proc", "home"):
        root = copy_programs(tmp_path / name, "sh")
        if (root / name).exists():
            (root / name).rmdir()
        (root / name).symlink_to(target)
        r = run("exec", "--image", "dir:%s" % root, "--", "/bin/sh", "-c", "echo x > /%s/f" % name)
        assert r.code == 125 and len(r.lines()) == 1, r
    assert snapshot(target) == before


@needs_root
def test_image_and_mounts_together(image, data):
    r = run("exec", "--image", "dir:%s" % image, "--mount", "%s:/data:rw" % data, "--mount", "%s:/etc/motd" % (data / "file"),
            "--", "/bin/sh", "-c", "cat /etc/motd; echo new > /data/new; ls /data")
    assert (r.code, r.out) == (0, b"contentfile\nnew\nsub\n"), r
    assert (data / "new").read_text() == "new\n"


# ---- what is seen of the host itself ------------------------------------------------------------------


@needs_root
@pytest.mark.parametrize("source", ["/usr/share", "/etc/ld.so.cache"])
def test_mount_from_where_the_image_is_too(shared_dir, source):
    """An ordinary user's mounts are found by path: those below /usr and /etc are the host's own, not the cell's view of them."""
    want = os.stat(source)
    (shared_dir / "state").mkdir()
    os.chown(shared_dir / "state", USER, USER)
    r = run("exec", "--without", "cgroup", "--state", shared_dir / "state", "--mount", source + ":/data", "--", "stat", "-c", "%Y %s", "/data",
            prefix=as_user(), binary=copy_tree(shared_dir / "bin"))
    assert (r.code, r.out.split()) == (0, [b"%d" % want.st_mtime, b"%d" % want.st_size]), r
    r = run("exec", "--mount", source + ":/data", "--", "stat", "-c", "%Y %s", "/data")
    assert (r.code, r.out.split()) == (0, [b"%d" % want.st_mtime, b"%d" % want.st_size]), r


def test_usr_is_one_tree(tmp_path):
    """Links, hard links, directories and sizes of /usr and of the visible /etc are the same in a cell and on the host."""
    look = "cd %s && find . -xdev \\( -type f -printf '%%p %%s %%n %%m\\n' -o -type l -printf '%%p %%l\\n' -o -type d -printf '%%p %%m\\n' \\) | LC_ALL=C sort | sha256sum"
    for place in ("/usr/bin", "/usr/lib/python3", "/etc/alternatives"):
        if os.path.isdir(place):
            r = run("exec", "--", "sh", "-c", look % place)
            assert r.out == subprocess.run(["sh", "-c", look % place], capture_output=True, check=True).stdout, (place, r)


@needs_root
@pytest.mark.parametrize("below, kind", [("/usr/local", {"/usr": False, "/etc/alternatives": True}), ("/etc/ssl", {"/usr": True, "/etc/alternatives": True}),
                                         (None, {"/usr": True, "/etc/alternatives": True})])
def test_mounts_below_usr_are_seen(below, kind):
    """An overlay would hide mounts below: such a directory is a plain bind, and the receipt reports this."""
    mount = 'mount -t tmpfs none "$0" && mkdir "$0/certs" && echo here > "$0/certs/mark"; exec "$@"' if below else 'exec "$@"'
    r = run("exec", "--receipt", "--json", "--", "cat", *(["%s/certs/mark" % below] if below else ["/dev/null"]),
            prefix=["unshare", "-m", "sh", "-c", mount, below or "-"])
    assert r.code == 0 and r.json["stdout"] == ("here\n" if below else ""), r
    places = {line.split()[4]: " - overlay " in line for line in r.json["receipt"]["mounts"]}
    assert {k: places[k] for k in kind if k in places} == kind, places


NODES = "import os\nfor n in ('null', 'zero', 'full', 'random', 'urandom', 'tty'):\n    s = os.stat('/dev/' + n)\n    print(n, oct(s.st_mode), os.major(s.st_rdev), os.minor(s.st_rdev))\n" \
        "open('/dev/null', 'w').write('x')\nprint(open('/dev/zero', 'rb').read(2), len(open('/dev/urandom', 'rb').read(9)))"


@needs_root
@pytest.mark.parametrize("own", [True, False])
def test_device_nodes(own):
    """They are the cell's own, with the types of the host. A caller who may not make nodes gets the host's, and the receipt reports it."""
    r = run("run", "--receipt", "--json", NODES, prefix=[] if own else ["setpriv", "--bounding-set=-mknod"])
    host = subprocess.run([sys.executable, "-c", NODES], capture_output=True, text=True, check=True).stdout
    assert r.code == 0 and r.json["stdout"] == host, r
    kinds = {line.split()[4]: line.split(" - ")[1].split()[0] for line in r.json["receipt"]["mounts"]}
    devices = {kinds["/dev/" + n] for n in ("null", "zero", "full", "random", "urandom", "tty")}
    assert (devices == {"tmpfs"}) == own and r.json["receipt"]["enforced"], kinds
