"""Against ``transformers serve``, a server that others wrote."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from models.far import PROMPTS, at, endpoint
from models.served import Model, tiny

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.remote import identify
from plumbline.probes.models.scorer import Sampling

pytestmark = pytest.mark.slow
STORIES = Path(__file__).parents[3] / "shared" / "data" / "models" / "stories260k"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def serve(folder, tmp_path_factory):
    """Run the server with the tiny model in its Hub cache; yield its address."""
    cache = tmp_path_factory.mktemp("hub")
    repository = cache / "models--plumbline--tiny"
    shutil.copytree(folder, repository / "snapshots" / ("0" * 40))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [Path(sys.executable).with_name("transformers"), "serve", "--device", "cpu"]
    address = f"http://127.0.0.1:{port}"
    with (cache / "log").open("w") as log:
        running = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            env=os.environ
            | {"HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
            stdout=log,
            stderr=log,
        )
    try:
        while not answers(f"{address}/health"):
            assert running.poll() is None, (cache / "log").read_text()
            time.sleep(0.1)
        yield address
    finally:
        running.terminate()
        running.wait()


def answers(url):
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except OSError:
        return False
    return True


def there(address, **more):
    return at(address, **{"model": "plumbline/tiny", "timeout_s": 60} | more)


def test_the_server_names_its_models(serve):
    known = identify(endpoint(serve, model="plumbline/tiny"))
    assert known.keys() == {"id", "created", "owned_by"}
    assert (known["id"], known["owned_by"]) == ("plumbline/tiny", "plumbline")
    with pytest.raises(UserError, match=r"has no 'tiny'; it lists: plumbline/tiny$"):
        identify(endpoint(serve, model="tiny"))


def test_the_server_writes_what_the_model_writes(serve, folder):
    model, far = Model(folder), there(serve)
    texts = list(far.generate(PROMPTS, range(6), Sampling(tokens=4, temperature=0)))
    for text, prompt in zip(texts, PROMPTS, strict=True):
        _, drawn = model.write(prompt, 4, 0, 0)
        assert text.text == model.tokenizer.decode(drawn, skip_special_tokens=True)
        assert text.tokens == len(drawn)
    assert far.budget.spent == sum(
        len(model.tokenizer(text.prompt).input_ids) + text.tokens for text in texts
    )


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_the_server_draws_by_the_seed_where_one_request_is_on_its_way(serve, api):
    def drawn(prompts, seeds):
        far = there(serve, concurrency=1, api=api)
        return [text.text for text in far.generate(prompts, seeds, Sampling(tokens=4))]

    first = drawn(PROMPTS[:1] * 4, range(4))
    assert drawn(PROMPTS[:1] * 4, (3, 2, 1, 0)) == first[::-1]
    assert len(set(first)) > 2


def test_the_server_tells_no_scores_and_takes_no_top_k(serve):
    far = there(serve)
    with pytest.raises(UserError, match=r"it does not echo the prompt; scores need one that takes"):
        list(far.logprobs([("he is", " kind")]))
    with pytest.raises(UserError, match=r"HTTP 422.*top_k"):
        list(far.generate(PROMPTS, range(6), Sampling(tokens=4, top_k=5)))


@pytest.mark.shared
def test_the_server_tells_stories(serve):
    if not STORIES.is_dir():
        pytest.skip(f"{STORIES} is not there")
    far = there(serve, model=str(STORIES))
    (text,) = far.generate(["Once upon a time"], [0], Sampling(tokens=8, temperature=0))
    assert (text.text, text.tokens, text.finished) == (", there was a little girl", 8, False)
