"""The notebooks run on the pipeline's tables, and their figures have something in them."""

from __future__ import annotations

import base64
import io
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


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
@pytest.mark.filterwarnings("ignore")  # of Jupyter and of the kernel, none of them ours
def test_notebook_draws_its_figures(notebook, tmp_path, monkeypatch):
    import nbformat
    from matplotlib import image
    from nbclient import NotebookClient

    if not (TOP / "data/tables").exists() and not os.environ.get("CI"):
        pytest.skip("data/tables is not there: make repro")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    monkeypatch.setenv("PLUMBLINE_HOME", str(tmp_path / "home"))
    book = nbformat.read(notebook, as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells), "committed with outputs"
    where = {"metadata": {"path": str(notebook.parent)}}
    NotebookClient(book, timeout=600, resources=where).execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    drawn = [o["data"]["image/png"] for o in outputs if "image/png" in o.get("data", {})]
    assert len(drawn) == FIGURES[notebook.stem]
    for picture in drawn:
        pixels = image.imread(io.BytesIO(base64.b64decode(picture)))
        assert (pixels[..., :3].max(axis=2) < 0.9).mean() > 0.01, "an empty figure"
