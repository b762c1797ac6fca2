# SPDX-License-Identifier: Apache-2.0
"""displays.py - Libraries that show things, as in Jupyter: plots, pictures, formulas, tables, progress bars, widgets as text."""
from case import Case, install, mcp, python

PLOTLY = "application/vnd.plotly.v1+json"
NO_FAILURE = ("failed:", "Traceback", "Warning")

CASES = [
    # ---- plots
    Case("plotly show", python("import plotly.graph_objects as go\nfig = go.Figure(go.Bar(x=['a'], y=[1]))\nfig.show()", mime=(PLOTLY, "text/html"), lacks=NO_FAILURE),
         python("fig", mime=(PLOTLY, "text/html"), lacks=NO_FAILURE),
         python("import json\nlen(json.dumps(fig.to_dict())) < 2000000", result="True"), modules="plotly"),
    Case("plotly express and update", python("import plotly.express as px\nfig = px.line(x=[1, 2], y=[3, 4])\nfig.update_layout(title='T').show()", mime=PLOTLY, lacks=NO_FAILURE),
         modules=("plotly", "pandas")),
    Case("plotly without the library in each result", python("import plotly.io as pio\npio.renderers.default", result="'plotly_mimetype+notebook_connected'"), modules="plotly"),
    Case("bokeh in the notebook",
         python("from bokeh.io import output_notebook, show\nfrom bokeh.plotting import figure\noutput_notebook()", mime=("text/html", "application/vnd.bokehjs_load.v0+json"), lacks=NO_FAILURE),
         python("p = figure(width=200, height=200)\np.line([1, 2], [3, 4])\nshow(p)", mime=("text/html", "application/vnd.bokehjs_exec.v0+json"), lacks=NO_FAILURE), modules="bokeh"),
    Case("altair chart", python("import altair as alt, pandas as pd\nchart = alt.Chart(pd.DataFrame({'x': [1, 2], 'y': [3, 4]})).mark_bar().encode(x='x:O', y='y:Q')\nchart", mime="text/html", lacks=NO_FAILURE),
         python("alt.renderers.enable('mimetype')\nsum('vegalite' in m for m in get_ipython().display_formatter.format(chart)[0])", result="1", lacks=NO_FAILURE),
         python("chart.show()", no_mime="text/html", lacks=NO_FAILURE), modules=("altair", "pandas")),
    Case("seaborn figure level plot and objects", install("seaborn", "scipy", "pandas", "matplotlib"),
         python("import seaborn as sns, pandas as pd\ndf = pd.DataFrame({'x': [1, 2, 3], 'y': [1, 4, 9], 'k': ['a', 'b', 'a']})\nsns.relplot(df, x='x', y='y', col='k')", pictures=1, lacks="failed:"),
         python("import seaborn.objects as so\nso.Plot(df, x='x', y='y').add(so.Line())", pictures=1, lacks="failed:")),
    Case("figure formats of notebooks",
         python("import matplotlib_inline.backend_inline\nmatplotlib_inline.backend_inline.set_matplotlib_formats('svg')\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
                mime="image/svg+xml", no_mime="image/png"), modules="matplotlib"),
    Case("live plot in a loop",
         python("from IPython.display import clear_output\nimport matplotlib.pyplot as plt\nfor i in range(70):\n    clear_output(wait=True)\n    plt.figure(figsize=(1, 1))\n    plt.plot([0, i])\n    plt.show()",
                pictures=1, truncated=False), modules="matplotlib"),

    # ---- pictures, formulas, tables
    Case("pillow shows itself", python("from PIL import Image\nim = Image.new('RGB', (30, 20), 'red')\nim.show()\ndisplay(im)", pictures=2, lacks=NO_FAILURE), modules="PIL"),
    Case("sympy with init_printing", python("import sympy as sp\nsp.init_printing()\nx = sp.symbols('x')\nsp.Integral(sp.sqrt(1 / x), x)", mime=("text/latex", "text/plain"), lacks=NO_FAILURE),
         python("[sp.Matrix([[1, x]]), 'text']", mime="text/plain", lacks=NO_FAILURE), modules="sympy"),
    Case("sympy without it", python("import sympy as sp\nx = sp.symbols('x')\nx ** 2 + 1", result="x**2 + 1", mime="text/latex"), modules="sympy"),
    Case("pandas styles", python("import pandas as pd\npd.DataFrame({'a': [1.5, -2]}).style.format('{:.2f}').highlight_max(color='red')", mime="text/html", lacks=NO_FAILURE), modules=("pandas", "jinja2")),
    Case("rich prints text", python("from rich import print as rprint\nfrom rich.table import Table\nt = Table('who')\nt.add_row('[bold]Ada[/bold]')\nrprint(t)\nrprint({'a': [1]})",
                                    shows=("Ada", "{'a': [1]}"), lacks=("\x1b[", "Warning")),
         python("t", mime=("text/html", "text/plain")),
         python("from rich.progress import track\nprint(sum(track(range(3), description='work')))", shows=("work", "100%", "3"), lacks="ipywidgets"),
         python("from rich import pretty\npretty.install()\n{'a': [1, 2]}", result="{'a': [1, 2]}", lacks=NO_FAILURE), modules="rich"),

    # ---- progress and widgets
    Case("tqdm in every spelling",
         python("from tqdm.auto import tqdm\nprint(sum(tqdm(range(4))))", out="6\n", err="100%", lacks="IProgress"),
         python("from tqdm.notebook import tqdm, trange\nprint(sum(tqdm(range(4))), list(trange(2)))", out="6 [0, 1]\n", err="100%", lacks="IProgress"), modules="tqdm"),
    Case("ipywidgets show their text",
         python("import ipywidgets as widgets\nfrom IPython.display import display\ns = widgets.IntSlider(value=3)\ndisplay(s)", mime="text/plain", no_mime="application/vnd.jupyter.widget-view+json", lacks=NO_FAILURE),
         python("s", result="IntSlider(value=3)\n(widgets are not shown: this kernel has no comms)"),
         python("out = widgets.Output()\nwith out:\n    print('inside')", shows="inside", lacks=NO_FAILURE),
         python("widgets.interact(lambda n: n * 2, n=4);", mime="text/plain", lacks=NO_FAILURE),
         python("from tqdm.auto import tqdm\nprint(sum(tqdm(range(4))))", out="6\n", err="100%"), modules=("ipywidgets", "tqdm")),
    Case("a real IPython finds the same shell",
         python("from IPython.display import HTML\nbefore = get_ipython()"),
         python("%pip install -q ipython"),
         python("import IPython\nfrom IPython.core.interactiveshell import InteractiveShell\nprint(IPython.get_ipython() is before is InteractiveShell.instance(), hasattr(IPython, '__patched_cves__'))", out="True True\n"),
         python("from IPython.display import display, HTML, display_html, Markdown\ndisplay(HTML('<b>'))\ndisplay_html('<i>', raw=True)\nMarkdown('*x*')", mime=("text/html", "text/markdown"), lacks=NO_FAILURE),
         python("from IPython.utils.capture import capture_output\nwith capture_output() as c:\n    display(1); print('hidden')\nprint(c.stdout.strip(), len(c.outputs))", out="hidden 1\n"), modules="pip"),

    # ---- IPython.display
    Case("functions of IPython.display",
         python("from IPython.display import *\ndisplay_html('<b>', raw=True)\npublish_display_data({'text/markdown': '*m*'}, transient={'display_id': 'd'})\ndisplay(Image(data=b'\\x89PNG', format='png'), include=['image/png'])",
                mime=("text/html", "text/markdown", "image/png"), no_mime="text/plain"), quick=True),
    Case("updates of a display", python("h = display('wait', display_id=True)\nfor i in range(100): h.update(i)"), python("'x'", result="'x'"), quick=True),
    Case("every expression of a cell", python("from IPython.core.interactiveshell import InteractiveShell\nInteractiveShell.ast_node_interactivity = 'all'"),
         python("1 + 1\n2 + 2", result="4", mime="text/plain")),
    Case("a result that is cut", python("'x' * (2 << 20)", truncated=True), python("'x'", truncated=False), quick=True),
    Case("pictures over MCP", mcp("execute_code", {"code": "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", "language": "python", "session_id": "{box}"}, pictures=1), modules="matplotlib"),
]
