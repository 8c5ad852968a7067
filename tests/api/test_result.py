"""The summary, the LaTeX table and the plot of a result."""

from dataclasses import replace

import polars as pl

from plumbline import latex
from plumbline.probes.site.headlines import HEADLINES
from plumbline.result import Result

ROWS = [
    {"what": "kind, en", "value": 0.75, "low": 0.6, "high": 0.9, "n": 40,
     "p": 1e-9, "p_bh": 2e-9, "detectable": 0.1},
    {"what": "calm, en", "value": -0.5, "low": None, "high": None, "n": 3,
     "p": None, "p_bh": None, "detectable": None},
    {"what": "calm, en", "value": 0.5, "low": 0.1, "high": 0.9, "n": 3,
     "p": 0.1, "p_bh": 0.1, "detectable": None},
    {"what": "tall, en", "value": None, "low": None, "high": None, "n": 0,
     "p": None, "p_bh": None, "detectable": None},
]  # fmt: skip


def result(folder, confidence=0.95):
    types = {"n": pl.Int64, "what": pl.String}
    rows = pl.DataFrame(ROWS, schema={key: types.get(key, pl.Float64) for key in ROWS[0]})
    rows = rows.with_columns(unit=pl.lit("nats"), null=pl.lit(0.0), void=pl.lit(""))
    own = "politicians", "my-bert", HEADLINES["politicians"].kind, rows, {"pmi": rows}, "pmi"
    return Result(*own, folder, {}, confidence=confidence, _controls=dict)


def test_confidence_of_intervals_is_that_of_the_result(tmp_path):
    own = result(tmp_path, confidence=0.8)
    assert r"80\% interval" in own.to_latex()
    assert "80% interval" in own.svg()
    assert "95" not in own.to_latex() + own.svg().split("</text>", 1)[0]


def test_summary_without_detectable_effect(tmp_path):
    rows = [row | {"p": 0.06, "p_bh": 0.06, "detectable": None} for row in ROWS[:3]]
    same = result(tmp_path)
    found = replace(
        same, headline=pl.DataFrame(rows).with_columns(unit=pl.lit("nats"), void=pl.lit(""))
    )
    assert found.summary.endswith(
        "; half of them would have found none, or rest on too little to tell."
    )


def test_text_prints_each_sign_as_it_is():
    """Outside math, OT1 prints | and " as other signs, and TeX joins pairs such as -- to one."""
    quote = r"\texttt{\symbol{34}}"
    for words, code in {
        "a|b": r"a\textbar{}b",
        '"so"': f"{quote}so{quote}",
        "---": "-{}-{}-",
        "``": "`{}`",
        "''": "'{}'",
        "?` !`": "?{}` !{}`",
        "<,,>": r"\textless{},{},\textgreater{}",
        "a-b, don't!": "a-b, don't!",
    }.items():
        assert latex.text(words) == code
