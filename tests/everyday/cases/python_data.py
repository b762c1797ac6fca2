# SPDX-License-Identifier: Apache-2.0
"""python_data.py - Libraries that agents reach for: data, pictures, mathematics, the web. Libraries that the image lacks are installed.

Displays of these libraries have tables of their own where they are a matter of media types; here the work itself counts.
"""
from case import Case, bash, http, python
from cases.python_library import SERVER

FRAME = "import pandas as pd\ndf = pd.DataFrame({'city': ['Oslo', 'Rome', 'Oslo'], 'n': [1, 2, 3]})\n"

CASES = [
    # ---- arrays and tables
    Case("numpy arrays", python("""
            import numpy as np
            a = np.arange(6).reshape(2, 3)
            print(a.sum(axis=0), a.mean())
            a""", out="[3 5 7] 2.5\n", result="array([[0, 1, 2],\n       [3, 4, 5]])"), modules="numpy"),
    Case("numpy linear algebra and random", python("""
            import numpy as np
            rng = np.random.default_rng(0)
            m = rng.normal(size=(50, 50))
            print(np.allclose(m @ np.linalg.inv(m), np.eye(50)), round(float(rng.random()), 3) < 1)""", out="True True\n"), modules="numpy"),
    Case("numpy save and load", python("""
            import numpy as np
            np.save('a.npy', np.eye(2)); np.savez('b.npz', x=np.ones(3))
            print(np.load('a.npy').trace(), np.load('b.npz')['x'].sum())""", out="2.0 3.0\n"), modules="numpy"),
    Case("pandas group and describe", python(FRAME), python("""
            print(df.groupby('city').n.sum().to_dict())
            df.describe().loc['max', 'n']""", out="{'Oslo': 4, 'Rome': 2}\n", result="3.0"), modules="pandas"),
    Case("pandas table is html", python(FRAME), python("df", mime=("text/html", "text/plain")), modules="pandas"),
    Case("pandas csv both ways", python(FRAME), python("""
            df.to_csv('t.csv', index=False)
            pd.read_csv('t.csv').equals(df)""", result="True", files={"t.csv": "city,n\nOslo,1\nRome,2\nOslo,3\n"}), modules="pandas"),
    Case("pandas csv that was uploaded", http("PUT", "/files?path=sales.csv", body=b"month,amount\nJan,10\nFeb,32\n", http=201), python("""
            import pandas as pd
            int(pd.read_csv('sales.csv').amount.sum())""", result="42"), modules="pandas"),
    Case("pandas parquet", python(FRAME), python("""
            df.to_parquet('t.parquet')
            pd.read_parquet('t.parquet').n.tolist()""", result="[1, 2, 3]"), modules=("pandas", "pyarrow")),
    Case("pandas excel", python(FRAME), python("""
            df.to_excel('t.xlsx', index=False)
            pd.read_excel('t.xlsx').shape""", result="(3, 2)"), modules=("pandas", "openpyxl")),
    Case("pandas json, merge, pivot", python(FRAME), python("""
            other = pd.DataFrame({'city': ['Oslo', 'Rome'], 'land': ['NO', 'IT']})
            m = df.merge(other)
            print(m.pivot_table(index='land', values='n', aggfunc='sum').n.to_dict(), m.to_json(orient='records')[:15])""", out="{'IT': 2, 'NO': 4} [{\"city\":\"Oslo\"\n"),
         modules="pandas"),
    Case("pandas time series", python("""
            import pandas as pd
            s = pd.Series(range(60), index=pd.date_range('2024-01-01', periods=60, freq='D'))
            print(s['2024-02'].sum(), s.rolling(7).mean().iloc[-1])""", out="1305 56.0\n"), modules="pandas"),
    Case("pandas and sqlite", python(FRAME), python("""
            import sqlite3
            db = sqlite3.connect(':memory:')
            df.to_sql('t', db, index=False)
            int(pd.read_sql('select sum(n) as s from t', db).s[0])""", result="6"), modules="pandas"),
    Case("polars", python("""
            import polars as pl
            df = pl.DataFrame({'a': ['x', 'y', 'x'], 'n': [1, 2, 3]})
            print(df.group_by('a').agg(pl.col('n').sum()).sort('a').rows())
            df.write_csv('p.csv')""", out="[('x', 4), ('y', 2)]\n"), modules="polars"),
    Case("duckdb", python(r"""
            import duckdb
            open('d.csv', 'w').write('a,b\n1,2\n3,4\n')
            duckdb.sql("select sum(a) + sum(b) as s from 'd.csv'").fetchall()""", result="[(10,)]"), modules="duckdb"),
    Case("pyarrow", python("""
            import pyarrow as pa, pyarrow.parquet as pq
            t = pa.table({'a': [1, 2]})
            pq.write_table(t, 'a.parquet')
            pq.read_table('a.parquet').num_rows""", result="2"), modules="pyarrow"),
    Case("scipy", python("""
            from scipy import optimize, stats, integrate
            print(round(optimize.brentq(lambda x: x * x - 2, 0, 2), 4), round(integrate.quad(lambda x: x, 0, 1)[0], 2), round(stats.norm.cdf(0), 1))""", out="1.4142 0.5 0.5\n"),
         modules="scipy"),
    Case("scikit-learn", python("""
            from sklearn.datasets import load_iris
            from sklearn.ensemble import RandomForestClassifier
            from sklearn.model_selection import train_test_split
            x, y = load_iris(return_X_y=True)
            a, b, c, d = train_test_split(x, y, random_state=0)
            print(RandomForestClassifier(20, random_state=0).fit(a, c).score(b, d) > 0.9)""", out="True\n"), modules="sklearn"),
    Case("scikit-learn in parallel", python("""
            from sklearn.datasets import make_regression
            from sklearn.linear_model import Ridge
            from sklearn.model_selection import cross_val_score
            x, y = make_regression(200, 5, noise=0.1, random_state=0)
            print(len(cross_val_score(Ridge(), x, y, cv=4, n_jobs=2)))""", out="4\n"), modules="sklearn"),
    Case("statsmodels", python("""
            import numpy as np, statsmodels.api as sm
            x = np.arange(10.)
            print(sm.OLS(2 * x + 1, sm.add_constant(x)).fit().params.round(2).tolist())""", out="[1.0, 2.0]\n"), modules=("statsmodels", "numpy")),
    Case("sympy", python("""
            from sympy import symbols, solve, integrate, sin
            x = symbols('x')
            print(solve(x**2 - 4, x), integrate(sin(x), x))""", out="[-2, 2] -cos(x)\n"), modules="sympy"),
    Case("networkx", python("""
            import networkx as nx
            g = nx.path_graph(5)
            print(nx.shortest_path(g, 0, 4), nx.density(g))""", out="[0, 1, 2, 3, 4] 0.4\n"), modules="networkx"),

    # ---- pictures
    Case("matplotlib figure", python("""
            import matplotlib.pyplot as plt
            plt.plot([1, 2, 3])
            plt.title('T')
            plt.show()""", mime="image/png", pictures=1), modules="matplotlib"),
    Case("matplotlib without show", python("""
            import matplotlib.pyplot as plt
            plt.bar(['a', 'b'], [1, 2])""", mime="image/png"), modules="matplotlib"),
    Case("matplotlib two figures", python("""
            import matplotlib.pyplot as plt
            for i in range(2):
                plt.figure()
                plt.plot([0, i])
            plt.show()""", pictures=2), modules="matplotlib"),
    Case("matplotlib savefig", python("""
            import matplotlib.pyplot as plt
            fig, ax = plt.subplots()
            ax.scatter([1], [1])
            fig.savefig('f.png'); fig.savefig('f.pdf'); fig.savefig('f.svg')
            import os
            print(all(os.path.getsize('f.' + e) > 1000 for e in ('png', 'pdf', 'svg')))""", shows="True"), modules="matplotlib"),
    Case("matplotlib agg backend chosen by code", python("""
            import matplotlib
            matplotlib.use('Agg')
            import matplotlib.pyplot as plt
            plt.plot([1])
            plt.savefig('x.png')
            print(open('x.png', 'rb').read(4))""", shows="PNG"), modules="matplotlib"),
    Case("seaborn", python("""
            import seaborn as sns, pandas as pd
            sns.barplot(data=pd.DataFrame({'x': ['a', 'b'], 'y': [1, 2]}), x='x', y='y')""", mime="image/png"), modules=("seaborn", "pandas", "matplotlib")),
    Case("pillow", python("""
            from PIL import Image, ImageDraw
            im = Image.new('RGB', (60, 40), 'red')
            ImageDraw.Draw(im).line((0, 0, 60, 40), fill='white')
            im.save('p.jpg')
            print(Image.open('p.jpg').size)
            im.resize((10, 10))""", out="(60, 40)\n", mime="image/png"), modules="PIL"),
    Case("plotly figure", python("""
            import plotly.graph_objects as go
            go.Figure(go.Bar(x=['a'], y=[1]))""", mime="application/vnd.plotly.v1+json"), modules="plotly"),
    Case("plotly to html", python("""
            import plotly.express as px
            px.scatter(x=[1, 2], y=[3, 4]).write_html('p.html')
            import os
            os.path.getsize('p.html') > 1000""", result="True"), modules=("plotly", "pandas")),
    Case("opencv", python("""
            import cv2, numpy as np
            im = np.zeros((20, 20, 3), np.uint8)
            cv2.circle(im, (10, 10), 5, (255, 255, 255), -1)
            cv2.imwrite('c.png', im)
            print(cv2.imread('c.png').shape, int(im.max()))""", out="(20, 20, 3) 255\n"), modules="cv2"),

    # ---- text and documents
    Case("beautifulsoup and lxml", python("""
            from bs4 import BeautifulSoup
            soup = BeautifulSoup('<ul><li class=a>one</li><li>two</li></ul>', 'lxml')
            print([li.text for li in soup.select('li')], soup.find(class_='a').text)""", out="['one', 'two'] one\n"), modules=("bs4", "lxml")),
    Case("lxml xpath", python("""
            from lxml import etree
            etree.fromstring('<a><b n="1"/><b n="2"/></a>').xpath('//b/@n')""", result="['1', '2']"), modules="lxml"),
    Case("pyyaml", python(r"""
            import yaml
            print(yaml.safe_load('a: [1, 2]\nb: {c: x}'))
            print(yaml.safe_dump({'k': 'v'}))""", shows=("{'a': [1, 2], 'b': {'c': 'x'}}", "k: v")), modules="yaml"),
    Case("jinja2", python("""
            from jinja2 import Template
            Template('{% for n in ns %}{{ n }};{% endfor %}').render(ns=[1, 2])""", result="'1;2;'"), modules="jinja2"),
    Case("markdown", python("""
            import markdown
            markdown.markdown('# Hi *you*')""", result="'<h1>Hi <em>you</em></h1>'"), modules="markdown"),
    Case("openpyxl formulas and styles", python("""
            from openpyxl import Workbook, load_workbook
            wb = Workbook()
            ws = wb.active
            ws.append(['a', 1])
            ws['B2'] = '=SUM(B1:B1)'
            wb.save('w.xlsx')
            load_workbook('w.xlsx').active['B2'].value""", result="'=SUM(B1:B1)'"), modules="openpyxl"),
    Case("python-docx", python("""
            from docx import Document
            d = Document()
            d.add_heading('Report')
            d.add_paragraph('text')
            d.save('r.docx')
            [p.text for p in Document('r.docx').paragraphs]""", result="['Report', 'text']"), modules="docx"),
    Case("pypdf and reportlab", python("""
            from reportlab.pdfgen import canvas
            c = canvas.Canvas('a.pdf')
            c.drawString(100, 700, 'Hello PDF')
            c.save()
            from pypdf import PdfReader
            print('Hello PDF' in PdfReader('a.pdf').pages[0].extract_text())""", out="True\n"), modules=("reportlab", "pypdf")),
    Case("pydantic", python("""
            from pydantic import BaseModel, ValidationError
            class U(BaseModel):
                name: str
                age: int
            print(U(name='A', age='3'))
            try: U(name='A', age='x')
            except ValidationError as e: print(e.error_count())""", out="name='A' age=3\n1\n"), modules="pydantic"),
    Case("attrs and dateutil", python("""
            import attr
            from dateutil import parser
            @attr.s(auto_attribs=True)
            class A:
                x: int = 1
            print(A(), parser.parse('3 May 2024').date())""", out="A(x=1) 2024-05-03\n"), modules=("attr", "dateutil")),
    Case("tqdm", python("""
            from tqdm import tqdm
            print(sum(tqdm(range(5))))""", out="10\n", err="100%"), modules="tqdm"),
    Case("rich", python("""
            from rich.console import Console
            from rich.table import Table
            t = Table(title='Scores')
            t.add_column('who')
            t.add_row('Ada')
            Console(width=40).print(t)""", shows=("Scores", "Ada")), modules="rich"),
    Case("click", python("""
            import click
            from click.testing import CliRunner
            @click.command()
            @click.option('--n', default=1)
            def f(n): click.echo(n * 2)
            CliRunner().invoke(f, ['--n', '21']).output""", result="'42\\n'"), modules="click"),
    Case("sqlalchemy", python("""
            from sqlalchemy import create_engine, text
            e = create_engine('sqlite:///a.db')
            with e.begin() as c:
                c.execute(text('create table t(n int)'))
                c.execute(text('insert into t values (42)'))
                print(c.execute(text('select n from t')).scalar())""", out="42\n"), modules="sqlalchemy"),
    Case("cryptography", python("""
            from cryptography.fernet import Fernet
            k = Fernet(Fernet.generate_key())
            k.decrypt(k.encrypt(b'secret'))""", result="b'secret'"), modules="cryptography"),
    Case("tiktoken-like regex library", python(r"""
            import regex
            regex.findall(r'\p{L}+', 'naïve 42 漢字')""", result="['naïve', '漢字']"), modules="regex"),
    Case("faker", python("""
            from faker import Faker
            Faker.seed(0)
            print(len(Faker().name()) > 3)""", out="True\n"), modules="faker"),
    Case("nltk without data", python("""
            from nltk.stem import PorterStemmer
            PorterStemmer().stem('running')""", result="'run'"), modules="nltk"),
    Case("numba", python("""
            from numba import njit
            @njit
            def f(n):
                s = 0
                for i in range(n): s += i
                return s
            f(1000)""", result="499500"), modules="numba"),

    # ---- the web
    Case("requests against an own server", python(SERVER), python("""
            import requests
            r = requests.get(URL + '/q', params={'a': 1}, timeout=10)
            print(r.status_code, r.json()['path'], requests.post(URL, data='x').text)""", out="200 /q?a=1 x\n"), modules="requests"),
    Case("requests without network explains", python("""
            import requests
            requests.get('https://example.com', timeout=5)""", code=1, error="ConnectionError", hint="egress"), modules="requests"),
    Case("httpx sync and async", python(SERVER), python("""
            import httpx
            print(httpx.get(URL + '/s').json()['path'])
            async with httpx.AsyncClient() as c:
                print((await c.get(URL + '/a')).status_code)""", out="/s\n200\n"), modules="httpx"),
    Case("aiohttp", python(SERVER), python("""
            import aiohttp
            async with aiohttp.ClientSession() as s, s.get(URL + '/x') as r:
                print(r.status, (await r.json())['n'])""", out="200 42\n"), modules="aiohttp"),
    Case("websockets", python("""
            import websockets, asyncio
            async def echo(ws, *a):
                async for m in ws: await ws.send(m.upper())
            async with websockets.serve(echo, '127.0.0.1', 8055):
                async with websockets.connect('ws://127.0.0.1:8055') as ws:
                    await ws.send('hi')
                    print(await ws.recv())""", out="HI\n"), modules="websockets"),
    Case("flask test client", python("""
            from flask import Flask, jsonify
            app = Flask('x')
            @app.get('/hi/<name>')
            def hi(name): return jsonify(hello=name)
            app.test_client().get('/hi/ada').get_json()""", result="{'hello': 'ada'}"), modules="flask"),
    Case("fastapi test client", python("""
            from fastapi import FastAPI
            from fastapi.testclient import TestClient
            app = FastAPI()
            @app.get('/n/{n}')
            def n(n: int): return {'double': 2 * n}
            print(TestClient(app).get('/n/21').json(), TestClient(app).get('/n/x').status_code)""", out="{'double': 42} 422\n"), modules=("fastapi", "httpx")),
    Case("pytest on a project", python("open('test_x.py', 'w').write('def test_a():\\n    assert 1 + 1 == 2\\ndef test_b():\\n    assert [1] == [2]\\n')"),
         bash("python3 -m pytest -q test_x.py", code=1, shows=("1 failed, 1 passed", "assert [1] == [2]")), modules="pytest"),
    Case("pip install in a cell", python("%pip install -q cowsay", lacks="error"), python("""
            import cowsay
            print(cowsay.get_output_string('cow', 'moo'))""", shows="moo"), index="python"),
    Case("pip install with an exclamation mark", python("!pip install -q tabulate"), python("""
            from tabulate import tabulate
            print(tabulate([[1, 2]], headers=['a', 'b']))""", shows="a    b"), index="python"),
    Case("pip install after the import failed", python("import inflection", code=1, error="ModuleNotFoundError"), python("%pip install inflection"), python("""
            import inflection
            inflection.pluralize('box')""", result="'boxes'"), index="python"),
]
