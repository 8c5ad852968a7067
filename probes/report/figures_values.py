"""Figures of the study of values: calibration scatters, and values against a survey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from plumbline.probes.report.drawing import named, svg

if TYPE_CHECKING:
    from collections.abc import Sequence

MARKS = {"feminine": ("o", "white"), "masculine": ("s", "black")}


def calibration(points: Sequence[dict[str, Any]], slope: float, sigma: float, title: str) -> str:
    """Draw LogDisagree against LogAgree, with the line through 0 and one sigma around it.

    Parameters
    ----------
    points
        Keys disagree_nats, agree_nats, gender, and calibration, whether it is for calibration.
    """
    figure = Figure(figsize=(5.2, 3.8))
    axes = figure.add_subplot()
    xs = [p["disagree_nats"] for p in points]
    ends = [min(xs), max(xs)]
    line = [slope * x for x in ends]
    axes.fill_between(ends, [y - sigma for y in line], [y + sigma for y in line], color="0.9", lw=0)
    axes.plot(ends, line, "k-", lw=1, label=f"LogAgree = {slope:.3f} LogDisagree, ± sigma")
    for gender, (marker, face) in MARKS.items():
        own = [p for p in points if p["calibration"] and p["gender"] == gender]
        axes.scatter(
            [p["disagree_nats"] for p in own],
            [p["agree_nats"] for p in own],
            marker=marker,
            s=14,
            facecolor=face,
            edgecolor="0.35",
            lw=0.6,
            label=f"calibration, {gender}",
        )
    political = [p for p in points if not p["calibration"]]
    axes.scatter(
        [p["disagree_nats"] for p in political],
        [p["agree_nats"] for p in political],
        marker="x",
        s=14,
        color="black",
        lw=0.8,
        label="political, both",
    )
    axes.set_xlabel("log-probability of disagreeing (nats)")
    axes.set_ylabel("log-probability of agreeing (nats)")
    axes.legend(frameon=False, fontsize=7)
    axes.set_title(title, fontsize=9, loc="left")
    shows = (
        f"{title}. Scatter plot of {len(points)} statements, {len(political)} of them political: "
        "log-probability of agreeing against that of disagreeing, with the line of calibration, "
        f"of slope {slope:.3f}, and one sigma around it."
    )
    return svg(figure, shows=shows)


def values(
    rows: Sequence[dict[str, Any]], survey: dict[str, dict[str, float]], about: str, title: str
) -> str:
    """Draw the values of each grammatical gender with intervals, over a survey's quartiles.

    Parameters
    ----------
    rows
        Keys axis, gender, value, low, high.
    survey
        By value: quartile_low, median, quartile_high of the respondents; none may be there.
    about
        What the survey is.
    """
    names = sorted({row["axis"] for row in rows})
    figure = Figure(figsize=(6.2, 0.62 * len(names) + 1.2))
    axes = figure.add_subplot()
    for y, name in enumerate(reversed(names)):
        if name in survey:
            own = survey[name]
            width = own["quartile_high"] - own["quartile_low"]
            axes.barh(y, width, 0.7, own["quartile_low"], color="0.88")
            axes.plot([own["median"]] * 2, [y - 0.35, y + 0.35], color="0.5", lw=1.5)
        for gender, (marker, face) in MARKS.items():
            at = y + (0.15 if gender == "feminine" else -0.15)
            for row in rows:
                if (row["axis"], row["gender"]) == (name, gender):
                    if row["low"] is not None:
                        axes.plot([row["low"], row["high"]], [at, at], color="0.3", lw=1.1)
                    axes.plot([row["value"]], [at], marker, ms=5, mfc=face, mec="black")
    axes.axvline(3, color="0.7", lw=0.8, ls=":")
    named(axes.yaxis, range(len(names)), list(reversed(names)))
    axes.set_xlim(1, 5)
    note = f"\ngrey: quartiles and median of {about}" if survey else ""
    axes.set_xlabel(f"mean rating; white: feminine, black: masculine{note}", fontsize=8)
    axes.set_title(title, fontsize=9, loc="left")
    told = "; ".join(f"{r['axis']}, {r['gender']}: {r['value']:.2f}" for r in rows)
    beside = f", over the quartiles of {about}" if survey else ""
    shows = f"{title}. Mean ratings from 1 to 5 with intervals{beside}. {told}."
    return svg(figure, shows=shows)
