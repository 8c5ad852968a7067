"""The notebooks run on the pipeline's tables, and their figures have something in them."""

from __future__ import annotations

import base64
import io
import json
import os

import pytest
from documented import TOP

NOTEBOOKS = sorted((TOP / "notebooks").glob("*.ipynb"))
FIGURES = {
    "politicians": 2,
    "stereotypes": 2,
    "values": 2,
    "nationality": 2,
    "leaning": 1,
    "ask": 1,
}


def test_every_study_has_a_notebook():
    studies = {page.stem for page in (TOP / "docs/studies").glob("*.md")}
    assert {notebook.stem for notebook in NOTEBOOKS} == {*studies, "ask"} == set(FIGURES)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_is_small_and_kept_without_outputs(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    assert len(cells) < 15
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
    first = "".join(cells[1]["source"])
    if notebook.stem == "ask":
        assert first.startswith("MODEL = ")
        return
    assert first.startswith('TABLES = "../data/tables/')
    assert "\nREVISION = " in first


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
@pytest.mark.filterwarnings("ignore")  # of Jupyter and of the kernel, none of them ours
def test_a_notebook_draws_its_figures(notebook, tmp_path, monkeypatch):
    import nbformat
    from matplotlib import image
    from nbclient import NotebookClient

    if not (TOP / "data/tables").exists() and not os.environ.get("CI"):
        pytest.skip("data/tables is not there: make repro")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    monkeypatch.setenv("PLUMBLINE_HOME", str(tmp_path / "home"))
    book = nbformat.read(notebook, as_version=4)
    where = {"metadata": {"path": str(notebook.parent)}}
    NotebookClient(book, timeout=600, resources=where).execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    drawn = [o["data"]["image/png"] for o in outputs if "image/png" in o.get("data", {})]
    assert len(drawn) == FIGURES[notebook.stem]
    for picture in drawn:
        pixels = image.imread(io.BytesIO(base64.b64decode(picture)))
        assert (pixels[..., :3].max(axis=2) < 0.9).mean() > 0.01, "an empty figure"
