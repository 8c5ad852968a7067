from pathlib import Path

import pytest
from articles import FILES
from samples import DAY, POLITE, files, news_params

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.outlets import fetch as news
from sources.misbehaving import always, half, misbehaving, says

REAL = Path(__file__).parents[3] / "shared/data/news"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("news")
    for name, write in FILES.items():
        (folder / name).write_bytes(write())
    with files(folder) as found:
        yield found


@pytest.mark.parametrize(
    ("behaviour", "wrong"),
    [
        (half, "cut short"),
        (says(b'{"id": "1"}\n'), "no column 'about'"),
        (says(b"\n"), "no article in it"),
    ],
    ids=["half", "columns", "empty"],
)
def test_what_is_no_file_of_articles_is_refused_with_its_address(
    address, tmp_path, behaviour, wrong
):
    with misbehaving(address, always(behaviour)) as server:
        with pytest.raises(UserError, match=wrong) as caught:
            news.fetch(news_params(server.address), POLITE, tmp_path / DAY)
        assert str(caught.value).startswith(f"{server.address}/herald.jsonl: ")
    assert not list((tmp_path / DAY).rglob("*.jsonl"))


@pytest.mark.slow
@pytest.mark.shared
def test_the_real_articles_come_whole_over_the_network(tmp_path):
    if not REAL.is_dir():
        pytest.skip("needs ../shared/data/news")
    columns = {"outlet": "outlet", "text": "text", "leaning": "leaning", "date": "date"}
    entry = {"name": "allsides", "format": "parquet", "columns": columns, "licence": "theirs"}
    with files(REAL) as at:
        address = f"{at}/allsides_articles.parquet"
        corpus = entry | {"address": address, "citation": "Baly et al. (2020)"}
        news.fetch(news.Params(corpora={"en": [corpus]}), POLITE, tmp_path / DAY)
    whole = Snapshot.open(tmp_path / DAY)
    assert whole.manifest["counts"] == {"en/allsides": 37_554}
    assert (tmp_path / DAY / "en/allsides.parquet").stat().st_size > 70_000_000
