# SPDX-License-Identifier: Apache-2.0
"""backend.py - The matplotlib backend of a kernel: Agg draws, show() displays.

Theory of operation. matplotlib takes a backend by module name: `module://caisson_kernel.backend` works wherever this
package can be imported, from inside a zip as well. There is no window and no event loop, ever:

- `plt.show()` displays every open figure as image/png and closes it, as a notebook does. Its arguments
  (block, and whatever older code passes) mean nothing here.
- `figure.show()` displays that one figure and leaves it open; if it does not change any more,
  the end of the execution does not show it again.
- display.flush_figures() shows all other figures at the end of the execution, with any backend: code that calls
  matplotlib.use("Agg") loses nothing.

This is the only module of the kernel that imports matplotlib, and only matplotlib loads it. standins.py makes it the
backend. matplotlib before 3.6 needs the functions at the end; later versions use the classes. All of them must be in
the module itself: matplotlib before 3.5 copies its dictionary.
"""
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from . import display


class FigureManager(FigureManagerBase):
    """One open figure of pyplot."""

    def show(self):
        display.display(self.canvas.figure)


class FigureCanvas(FigureCanvasAgg):
    manager_class = FigureManager


def show(*_args, **_options):
    """pyplot.show()"""
    display.flush_figures()


def new_figure_manager_given_figure(num, figure):
    return FigureManager(FigureCanvas(figure), num)


def new_figure_manager(num, *args, FigureClass=Figure, **options):
    return new_figure_manager_given_figure(num, FigureClass(*args, **options))


def draw_if_interactive():
    """Called after each command of an interactive session; figures are drawn only when they are shown."""
