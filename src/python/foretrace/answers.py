"""Answers are dictionaries that notebooks display as a headline, a table and a small figure."""

from html import escape as _escape

# The colours of the pages.
_COLORS = {"compute": "#2563b8", "communication": "#7444ac", "copy": "#a1540a", "input": "#b23a33", "host": "#1f7a4d", "idle": "#5f6b7c"}
_WIDTH = 480  # Pixels of the longest bar.


def time_text(ns):
    """Returns a text such as "85.35 ms"."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size:
            return f"{ns / size:.4g} {unit}"
    return f"{ns:.4g} ns"


def _cell(value):
    return f"<td style='text-align:left'>{_escape(str(value))}</td>"


def _table(rows):
    return "<table>" + "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows) + "</table>"


def _bar(parts, longest):
    """Returns an SVG bar of the parts of a step."""
    shapes, left = [], 0.0
    for name, ns in parts.items():
        width = _WIDTH * ns / longest if longest else 0
        shapes.append(f"<rect x='{left:.1f}' y='0' width='{width:.1f}' height='14' fill='{_COLORS.get(name, '#9d755d')}'>"
                      f"<title>{_escape(name)} {time_text(ns)}</title></rect>")
        left += width
    return f"<svg width='{_WIDTH}' height='16' role='img' aria-label='parts of a step'>{''.join(shapes)}</svg>"


class Answer(dict):
    """A dictionary, with `kind` as its schema names it ("prediction", "curve", "advice", "diff" ...), and with `text`, what the
    command line prints, which print() shows; `html` is what a notebook shows. `csv` is the prediction with --format csv; empty for other answers."""

    def __init__(self, content=(), text="", csv=""):
        super().__init__(content)
        self._text, self._csv = text, csv

    @property
    def text(self):
        if callable(self._text):
            self._text = self._text()
        return self._text

    @property
    def html(self):
        """What a notebook shows."""
        return self._repr_html_()

    @property
    def csv(self):
        if callable(self._csv):
            self._csv = self._csv()
        return self._csv

    def __str__(self):
        return self.text or super().__repr__()

    @property
    def kind(self):
        return str(self.get("schema", "")).rpartition(".")[2].partition("/")[0]

    def headline(self):
        """Returns one sentence, like the first line on the command line."""
        return getattr(self, f"_headline_{self.kind}", lambda: f"an answer with {', '.join(self)}")()

    def _repr_html_(self):
        body = getattr(self, f"_html_{self.kind}", lambda: "")()
        return f"<div><b>{_escape(self.headline())}</b>{body}</div>"

    def plot(self, axes=None):
        """Draws the answer with matplotlib on `axes`, or on new ones, and returns them."""
        draw = getattr(self, f"_plot_{self.kind}", None)
        if draw is None:
            raise ValueError(f"plot: there is no figure for an answer of the kind {self.kind!r}")
        if axes is None:
            from matplotlib import pyplot

            axes = pyplot.subplots()[1]
        draw(axes)
        return axes

    # Predictions.

    def _headline_prediction(self):
        before, after = self["baseline"]["step_time_ns"], self["predicted"]
        text = f"{time_text(before)} -> {time_text(after['step_time_ns'])} a step"
        return f"{text}, between {time_text(after['lower_ns'])} and {time_text(after['upper_ns'])}"

    def _sides(self):
        return {"now": self["baseline"]["breakdown_ns"], "predicted": self["predicted"]["breakdown_ns"]}

    def _html_prediction(self):
        sides = self._sides()
        longest = max(sum(parts.values()) for parts in sides.values())
        bars = "".join(f"<tr><td>{name}</td><td>{_bar(parts, longest)}</td></tr>" for name, parts in sides.items())
        now, then = sides["now"], sides["predicted"]
        rows = [("", "now", "predicted")] + [(part, time_text(now[part]), time_text(then[part])) for part in now if now[part] or then[part]]
        return f"<table>{bars}</table>{_table(rows)}"

    def _plot_prediction(self, axes):
        sides = self._sides()
        left = [0.0, 0.0]
        for part in next(iter(sides.values())):
            widths = [parts[part] / 1e6 for parts in sides.values()]
            if any(widths):
                axes.barh(list(sides), widths, left=left, label=part, color=_COLORS.get(part))
            left = [at + width for at, width in zip(left, widths)]
        after = self["predicted"]
        middle = after["step_time_ns"]
        axes.errorbar([middle / 1e6], ["predicted"], xerr=[[(middle - after["lower_ns"]) / 1e6], [(after["upper_ns"] - middle) / 1e6]], color="black", capsize=4)
        axes.invert_yaxis()
        axes.set_xlabel("step, ms")
        axes.legend()

    # Curves of vary().

    def _points(self):
        return [point for point in self["points"] if point.get("step_time_ns")]

    def _headline_curve(self):
        points = self._points()
        if self.get("answer_text"):
            return self["answer_text"]
        best = min(points, key=lambda point: point["step_time_ns"])
        return f"{len(points)} values; {best['value']} is the fastest with {time_text(best['step_time_ns'])} a step"

    def _html_curve(self):
        points = self._points()
        longest = max(point["step_time_ns"] for point in points)
        rows = "".join(f"<tr>{_cell(point['value'])}{_cell(time_text(point['step_time_ns']))}"
                       f"<td>{_bar({'compute': point['step_time_ns']}, longest)}</td></tr>" for point in points)
        return f"<table>{rows}</table>"

    def _plot_curve(self, axes):
        points = self._points()
        axes.plot([str(point["value"]) for point in points], [point["step_time_ns"] / 1e6 for point in points], marker="o")
        axes.set_ylim(bottom=0)
        axes.set_xlabel(str(self.get("setting", "value")))
        axes.set_ylabel("step, ms")

    # Advice.

    def _headline_advice(self):
        return next(iter(self["verdict"].values()))

    def _suggestions(self):
        return [suggestion for suggestion in self["suggestions"] if suggestion["recommended"]]

    def _html_advice(self):
        return _table([(suggestion["use"], time_text(suggestion["step_time_ns"]), suggestion["confidence"]["word"])
                       for suggestion in self._suggestions()])

    def _plot_advice(self, axes):
        now = self["now"]["step_time_ns"]
        rows = [("now", now), *((suggestion["use"], suggestion["step_time_ns"]) for suggestion in self._suggestions())]
        axes.barh([name for name, _ in rows], [ns / 1e6 for _, ns in rows])
        axes.invert_yaxis()
        axes.set_xlabel("step, ms")

    # Differences between two recordings; the slowest rank is shown.

    def _slowest_rank(self):
        return next(rank for rank in self["ranks"] if rank["rank"] == self["slowest_rank"])

    def _headline_diff(self):
        return self._slowest_rank()["verdict"]

    def _html_diff(self):
        return _table([(time_text(cause["effect_ns"]), cause["text"]) for cause in self._slowest_rank()["causes"]])
