# SPDX-License-Identifier: Apache-2.0
"""test_display.py - Values become MIME bundles within their limits, and a kernel shows them."""
import base64
import json
import math
import sys

import pytest

from kernel_lib import GUEST, Kernel
from python_lib import ARGV, needs_matplotlib

sys.dont_write_bytecode = True
sys.path.insert(0, str(GUEST / "python"))

from caisson_kernel import display, objects  # noqa: E402

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def sent(monkeypatch):
    messages = []
    monkeypatch.setattr(display, "sender", lambda message, ack: messages.append((message, ack)))
    return messages


def obj(**methods):
    """An object whose methods return, or raise, the given values."""
    def answer(value):
        def method(self, *args, **kwargs):
            if isinstance(value, BaseException):
                raise value
            return value
        return method
    return type("Thing", (), {"__repr__": lambda self: "thing", **{k: answer(v) for k, v in methods.items()}})()


# Bundles


@pytest.mark.parametrize("method, value, mime, expected", [
    ("_repr_html_", "<b>", "text/html", "<b>"),
    ("_repr_markdown_", "# x", "text/markdown", "# x"),
    ("_repr_svg_", "<svg/>", "image/svg+xml", "<svg/>"),
    ("_repr_latex_", "$x$", "text/latex", "$x$"),
    ("_repr_png_", b"\x89PNG", "image/png", base64.b64encode(b"\x89PNG").decode()),
    ("_repr_jpeg_", b"\xff\xd8", "image/jpeg", base64.b64encode(b"\xff\xd8").decode()),
    ("_repr_json_", {"a": [1, None]}, "application/json", {"a": [1, None]}),
    ("_repr_json_", '{"a": 1}', "application/json", {"a": 1}),
])
def test_bundle_of_each_method(method, value, mime, expected):
    data, metadata = display.bundle(obj(**{method: value}))
    assert data == {mime: expected, "text/plain": "thing"} and metadata == {}


def test_bundle_of_plain_values():
    assert display.bundle(5) == ({"text/plain": "5"}, {})
    assert display.bundle("it's") == ({"text/plain": '"it\'s"'}, {})
    assert display.bundle(dict) == ({"text/plain": "<class 'dict'>"}, {})


def test_bundle_with_metadata():
    data, metadata = display.bundle(obj(_repr_png_=(b"x", {"width": 3})))
    assert data["image/png"] == "eA==" and metadata == {"image/png": {"width": 3}}


def test_mimebundle_wins_over_the_single_methods():
    thing = obj(_repr_mimebundle_=({"text/html": "<i>", "image/png": b"x", "application/x+json": {"a": 1}}, {"k": 1}),
                _repr_html_="<b>", _repr_latex_="$x$")
    data, metadata = display.bundle(thing)
    assert data == {"text/html": "<i>", "image/png": "eA==", "application/x+json": {"a": 1}, "text/latex": "$x$",
                    "text/plain": "thing"}
    assert metadata == {"k": 1}


def test_media_types_of_libraries_have_any_json():
    data = {"application/vnd.vegalite.v6.json": {"mark": "bar"}, "application/vnd.x+json": "", "application/vnd.y": [1]}
    assert display.bundle(obj(_repr_mimebundle_=data))[0] == {**data, "text/plain": "thing"}


def test_none_means_no_such_representation():
    assert display.bundle(obj(_repr_html_=None, _repr_mimebundle_=None))[0] == {"text/plain": "thing"}


def test_failing_repr_becomes_a_note():
    data, _ = display.bundle(obj(__repr__=ValueError("no\nway")))
    assert data == {"text/plain": "<Thing: repr() failed: ValueError: no\nway>"}
    assert "repr() failed: TypeError" in display.bundle(obj(__repr__=5))[0]["text/plain"]

    class Worse(Exception):
        def __str__(self):
            raise KeyError("worse")
    assert "repr() failed: Worse" in display.bundle(obj(__repr__=Worse()))[0]["text/plain"]


@pytest.mark.parametrize("methods", [
    {"_repr_html_": ValueError("x")}, {"_repr_html_": 5}, {"_repr_json_": object()}, {"_repr_json_": math.nan},
    {"_repr_mimebundle_": ValueError("x")}, {"_repr_mimebundle_": 7}, {"_repr_mimebundle_": {"text/html": 3}},
    {"_repr_html_": RecursionError()}, {"_ipython_display_": ValueError("x")},
])
def test_failing_representations_are_left_out_with_a_word(methods, capsys):
    data, metadata = display.bundle(obj(**methods))
    assert data == {"text/plain": "thing"} and metadata == {}
    assert capsys.readouterr().err.startswith("%s of Thing failed: " % list(methods)[0])


def test_interrupts_and_exits_are_not_swallowed():
    for exc in (KeyboardInterrupt(), SystemExit(3)):
        with pytest.raises(type(exc)):
            display.bundle(obj(__repr__=exc))


def test_objects_that_answer_to_every_name():
    from unittest.mock import MagicMock
    assert list(display.bundle(MagicMock())[0]) == ["text/plain"]

    class Proxy:
        def __getattr__(self, name):
            raise RuntimeError("not connected")
    assert list(display.bundle(Proxy())[0]) == ["text/plain"]


def test_long_repr_is_cut_with_a_note():
    text = display.bundle("\u00e9" * (1 << 20))[0]["text/plain"]
    assert len(text.encode()) < display.TEXT_MAX + 100
    assert text.endswith("<... cut here: %d bytes in all>" % ((2 << 20) + 2))
    exact = obj(__repr__="x" * display.TEXT_MAX)
    assert len(display.bundle(exact)[0]["text/plain"]) == display.TEXT_MAX


def test_large_bundle_is_replaced():
    data, metadata = display.bundle(obj(_repr_html_=("x" * (9 << 20), {"a": 1})))
    assert list(data) == ["text/plain"] and metadata == {}
    assert "text/html" in data["text/plain"] and "too large: " in data["text/plain"] and len(data["text/plain"]) < 300
    data, _ = display.bundle(obj(_repr_png_=b"x" * (5 << 20)))
    assert "image/png" in data
    assert "too large" in display.bundle(obj(_repr_json_=["\U0001f600" * 100] * 8000))[0]["text/plain"]


def test_lone_surrogates_become_escapes():
    data, _ = display.bundle(obj(__repr__="a\udc80b", _repr_html_="\ud800"))
    assert data == {"text/plain": "a\\udc80b", "text/html": "\\ud800"}
    json.dumps(data, ensure_ascii=False).encode("utf-8")


def test_what_is_left_out_is_told():
    assert display.measured("x")[2] is False and display.measured("x" * (2 << 20))[2] is True
    assert display.measured(obj(_repr_html_="x" * (9 << 20)))[2] is True
    assert display.measured(obj(_repr_mimebundle_={"text/plain": "t", display.WIDGET: {"model_id": "1"}}))[2] is False


def test_include_and_exclude():
    thing = obj(_repr_html_="<b>", _repr_latex_="$x$", _repr_mimebundle_={"text/markdown": "*m*"})
    assert display.bundle(thing, include=["text/html"])[0] == {"text/html": "<b>"}
    assert set(display.bundle(thing, exclude=["text/html", "text/markdown"])[0]) == {"text/latex", "text/plain"}


def test_pretty_printers():
    class Pretty:
        def _repr_pretty_(self, printer, cycle):
            with printer.group(2, "<", ">"):
                printer.text("one,")
                printer.breakable()
                printer.pretty([2])

    class Child(Pretty):
        def __repr__(self):
            return "child"
    assert display.bundle(Pretty())[0] == {"text/plain": "<one, [2]>"}
    assert display.bundle(Child())[0] == {"text/plain": "child"}  # its own repr() is nearer


def test_numbers_of_numpy_are_json():
    class Number:
        def tolist(self):
            return 7
    assert display.bundle(obj(_repr_json_={"a": Number()}))[0]["application/json"] == {"a": 7}


def test_registered_functions(monkeypatch):
    class Thing:
        pass

    class Child(Thing):
        pass
    html = display.formatters["text/html"]
    assert html.for_type(Thing, lambda t: "<u>") is None
    assert display.bundle(Child())[0]["text/html"] == "<u>"
    html.pop(Thing)
    assert list(display.bundle(Child())[0]) == ["text/plain"]
    plain = display.formatters["text/plain"]
    plain.for_type(Thing, lambda t, printer, cycle: printer.text("pretty"))
    assert display.bundle(Child())[0] == {"text/plain": "pretty"}
    plain.pop(Thing)


# Messages


def test_display_sends_one_message_per_object(sent):
    assert display.display(1, "x") is None
    assert sent == [({"type": "display", "data": {"text/plain": text}, "metadata": {}, "display_id": None,
                      "update": False}, True) for text in ("1", "'x'")]


def test_display_handles_update(sent):
    handle = display.display(1, display_id=True)
    handle.update(2)
    display.update_display(3, display_id=handle.display_id)
    handle.display(4)
    seen = [(m["data"]["text/plain"], m["display_id"], m["update"]) for m, _ in sent]
    name = handle.display_id
    assert seen == [("1", name, False), ("2", name, True), ("3", name, True), ("4", name, False)]
    assert display.display(1, display_id="mine").display_id == "mine"
    assert display.display(1, display_id=True).display_id != name
    with pytest.raises(TypeError):
        display.display(1, update=True)


def test_display_raw_and_metadata(sent):
    display.display({"text/html": "<b>", "image/png": b"x"}, raw=True, metadata={"k": 1})
    assert sent[0][0]["data"] == {"text/html": "<b>", "image/png": "eA=="} and sent[0][0]["metadata"] == {"k": 1}
    with pytest.raises(TypeError):
        display.display("text", raw=True)


def test_display_of_nothing_is_a_place_for_updates(sent):
    handle = display.display(display_id=True)
    handle.update("x")
    assert [(m["data"], m["display_id"], m["update"]) for m, _ in sent] == [
        ({}, handle.display_id, False), ({"text/plain": "'x'"}, handle.display_id, True)]


def test_publish_takes_the_arguments_of_ipython(sent):
    display.publish({"text/html": "<b>"}, {"text/html": {"isolated": True}}, "source", transient={"display_id": "d", "other": 1}, update=True)
    display.publish(data={"text/plain": "t"}, metadata=None, transient=None)
    display.display(1, transient={"display_id": "e"})
    seen = [(m["data"], m["metadata"], m["display_id"], m["update"]) for m, _ in sent]
    assert seen == [({"text/html": "<b>"}, {"text/html": {"isolated": True}}, "d", True), ({"text/plain": "t"}, {}, None, False),
                    ({"text/plain": "1"}, {}, "e", False)]


def test_metadata_of_display_is_merged(sent):
    display.display(obj(_repr_png_=(b"x", {"width": 3, "height": 4})), metadata={"image/png": {"width": 9}, "k": 1})
    assert sent[0][0]["metadata"] == {"image/png": {"width": 9, "height": 4}, "k": 1}


def test_displays_tell_what_is_left_out(sent):
    display.display("x" * (2 << 20), 1)
    display.publish({"text/html": "x" * (9 << 20)})
    assert [m.get("truncated") for m, _ in sent] == [True, None, True]


def test_a_widget_shows_its_text(sent):
    display.display(obj(_repr_mimebundle_={"text/plain": "IntSlider(value=1)", display.WIDGET: {"model_id": "1"}}))
    assert sent[0][0]["data"] == {"text/plain": "IntSlider(value=1)\n(widgets are not shown: this kernel has no comms)"}


def test_objects_may_show_themselves(sent):
    class Self:
        def _ipython_display_(self):
            display.display("me")
    assert display.bundle(Self()) == ({}, {})
    display.display(Self())
    assert [m["data"]["text/plain"] for m, _ in sent] == ["'me'"] * 2


def test_clear_output(sent):
    display.clear_output()
    display.clear_output(wait=True)
    assert sent == [({"type": "clear_output", "wait": False}, False), ({"type": "clear_output", "wait": True}, False)]


def test_nothing_happens_without_a_kernel(monkeypatch):
    monkeypatch.setattr(display, "sender", None)
    display.display(1)
    display.clear_output()
    display.flush_figures()


# The classes of IPython.display


@pytest.mark.parametrize("thing, mime, expected", [
    (objects.HTML("<b>"), "text/html", "<b>"),
    (objects.Markdown("#"), "text/markdown", "#"),
    (objects.Math("x^2"), "text/latex", "$\\displaystyle x^2$"),
    (objects.JSON('{"a": 1}'), "application/json", {"a": 1}),
    (objects.JSON([1]), "application/json", [1]),
    (objects.Javascript("1"), "application/javascript", "1"),
    (objects.GeoJSON({"type": "Point"}), "application/geo+json", {"type": "Point"}),
    (objects.Latex("$x$"), "text/latex", "$x$"),
    (objects.SVG("<svg/>"), "image/svg+xml", "<svg/>"),
    (objects.Pretty("a\nb"), "text/plain", "a\nb"),
    (objects.Code("a < b"), "text/html", "<pre><code>a &lt; b</code></pre>"),
    (objects.Code("a < b"), "text/plain", "a < b"),
    (objects.YouTubeVideo("id", start=3), "text/html", '<iframe width="400" height="300" src="https://www.youtube.com/embed/id?start=3" '
     'frameborder="0" allowfullscreen></iframe>'),
    (objects.FileLink("/nowhere"), "text/html", "There is no file <code>/nowhere</code>."),
    (objects.Image(b"\xff\xd8\xff"), "image/jpeg", "/9j/"),
    (objects.Image(b"GIF8", format="png"), "image/gif", "R0lGOA=="),
    (objects.Image(url="http://h/a.png?a&b", width=3), "text/html", '<img src="http://h/a.png?a&amp;b" width="3"/>'),
    (objects.Video("https://h/v.mp4"), "text/html", '<video controls src="https://h/v.mp4"></video>'),
    (objects.IFrame("http://h/", 3, 4), "text/html",
     '<iframe width="3" height="4" src="http://h/" frameborder="0" allowfullscreen></iframe>'),
])
def test_display_classes(thing, mime, expected):
    data, _ = display.bundle(thing)
    assert data[mime] == expected and "text/plain" in data


def test_display_classes_read_files(tmp_path):
    (tmp_path / "i.png").write_bytes(PNG)
    (tmp_path / "s.svg").write_text("<svg/>")
    (tmp_path / "a.mp3").write_bytes(b"ID3")
    image = objects.Image(str(tmp_path / "i.png"), width=20)
    assert display.bundle(image) == (
        {"image/png": base64.b64encode(PNG).decode(), "text/plain": repr(image)}, {"image/png": {"width": 20}})
    assert display.bundle(objects.Image(tmp_path / "i.png"))[0]["image/png"]
    assert display.bundle(objects.SVG(filename=str(tmp_path / "s.svg")))[0]["image/svg+xml"] == "<svg/>"
    assert 'src="data:audio/mpeg;base64,SUQz"' in display.bundle(objects.Audio(str(tmp_path / "a.mp3")))[0]["text/html"]
    assert "data:audio/wav;base64,UklGR" in display.bundle(objects.Audio([0, 1, -1], rate=8000))[0]["text/html"]
    assert "data:audio/wav;base64,UklGR" in display.bundle(objects.Audio([[0, 1], [1, 0]], rate=8000))[0]["text/html"]
    with pytest.raises(ValueError):
        objects.Audio([0, 2], rate=8000, normalize=False)
    (tmp_path / "r.html").write_text("<p>")
    assert objects.HTML(str(tmp_path / "r.html"))._repr_html_() == "<p>"  # text that is a path stands for the file
    assert objects.SVG(str(tmp_path / "s.svg")).data == "<svg/>" and objects.HTML("a\0b").data == "a\0b"
    assert display.bundle(objects.FileLinks(tmp_path))[0]["text/html"].count("<a href=") == 4
    with pytest.raises(FileNotFoundError):
        objects.Image(str(tmp_path / "nothing.png"))


def test_progress_bar(sent):
    assert list(objects.ProgressBar(2)) == [0, 1]
    assert [(m["update"], m["data"]["text/plain"][-3:]) for m, _ in sent] == [(False, "0/2"), (True, "0/2"), (True, "1/2"), (True, "2/2")]
    assert len({m["display_id"] for m, _ in sent}) == 1 and 'max="2" value="2"' in sent[-1][0]["data"]["text/html"]


# A whole kernel


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """One for all tests of this file."""
    k = Kernel([*ARGV, GUEST / "python"], cwd=tmp_path_factory.mktemp("workspace"))
    yield k
    k.close()


def test_kernel_displays_stay_in_order(kernel):
    r = kernel.run("print('a'); display(1); print('b'); h = display(2, display_id='x'); h.update(3); 4")
    assert [(m["data"]["text/plain"], m["display_id"], m["update"], m["stdout_before"]) for m in r.displays] == [
        ("1", None, False, "a\n"), ("2", "x", False, "a\nb\n"), ("3", "x", True, "a\nb\n")]
    assert r.text == "4"


def test_kernel_results(kernel):
    assert kernel.run("class T:\n    def _repr_html_(self): return '<b>'\nT()").result["data"]["text/html"] == "<b>"
    r = kernel.run("class S:\n    def _ipython_display_(self): display('me')\nS()")
    assert r.result is None and r.displays[0]["data"] == {"text/plain": "'me'"}
    r = kernel.run("class B:\n    def __repr__(self): raise ValueError('x')\nB()")
    assert r.status == "ok" and "repr() failed: ValueError: x" in r.text
    assert "too large" in kernel.run("class L:\n    def _repr_html_(self): return 'x' * (9 << 20)\nL()").text
    assert len(kernel.run("'x' * (3 << 20)").text) < (1 << 20) + 100


def test_kernel_tells_what_is_left_out(kernel):
    assert kernel.run("'x' * (3 << 20)").result["truncated"] is True
    r = kernel.run("display('x' * (3 << 20)); 'x'")
    assert r.displays[0]["truncated"] is True and "truncated" not in r.result


def test_kernel_shows_every_expression_if_asked(start_python):
    kernel = start_python()
    kernel.run("from IPython.core.interactiveshell import InteractiveShell\nInteractiveShell.ast_node_interactivity = 'all'")
    r = kernel.run("1\nx = 5\nx\nNone\nx + 1;\nawait __import__('asyncio').sleep(0, 7)\nx + 2")
    assert ([m["data"]["text/plain"] for m in r.displays], r.text) == (["1", "5", "7"], "7")
    assert kernel.run("%config InteractiveShell.ast_node_interactivity = 'last_expr_or_assign'\n1\ny = 3").text is None
    r = kernel.run("1\ny = 3")
    assert (r.text, r.displays) == ("3", [])
    kernel.run("%config InteractiveShell.ast_node_interactivity = 'none'")
    assert kernel.run("1").result is None
    r = kernel.run("%config InteractiveShell.ast_node_interactivity = 'some'")
    assert r.status == "error" and "not 'some'" in r.error["value"]


def test_kernel_events(start_python):
    kernel = start_python()
    kernel.run("ip = get_ipython()\nip.events.register('pre_run_cell', lambda info: print('before', info.raw_cell))\n"
               "ip.events.register('post_run_cell', lambda result: print('after', result.success, result.result))\n"
               "def bad(): raise ValueError('mine')\nip.events.register('post_execute', bad)")
    r = kernel.run("40 + 2")
    assert (r.stdout, r.text, r.status) == ("before 40 + 2\nafter True 42\n", "42", "ok") and "ValueError: mine" in r.stderr
    r = kernel.run("ip.events.unregister('post_execute', bad); 1/0")
    assert r.stdout.endswith("after False None\n") and r.status == "error" and "mine" not in r.stderr


def test_kernel_ipython_imports(kernel):
    r = kernel.run("from IPython.display import HTML, clear_output\nclear_output()\nHTML('<i>')")
    assert r.result["data"]["text/html"] == "<i>" and r.messages[0] == {"type": "clear_output", "wait": False}


@needs_matplotlib
def test_kernel_figures(kernel):
    r = kernel.run("%matplotlib inline\nimport matplotlib.pyplot as plt\nprint('a')\nplt.plot([1, 2])")
    assert [sorted(m["data"]) for m in r.displays] == [["image/png", "text/plain"]] and r.stderr == ""
    assert base64.b64decode(r.displays[0]["data"]["image/png"]).startswith(PNG) and "Line2D" in r.text
    r = kernel.run("for i in range(2):\n    plt.plot([i]); plt.show(); print(i)")
    assert [m["stdout_before"] for m in r.displays] == ["", "0\n"]
    r = kernel.run("fig, ax = plt.subplots(); ax.plot([1]); fig")
    assert "image/png" in r.result["data"] and r.displays == []
    r = kernel.run("plt.plot([1]); 1/0")
    assert r.status == "error" and len(r.displays) == 1
