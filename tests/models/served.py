"""A real OpenAI-compatible server on loopback, with a real causal model behind it.

It has what few servers have, the log-probabilities of a given text, and tells them as OpenAI did.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import torch
from models.tiny import byte_level, save
from tokenizers import processors
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

if TYPE_CHECKING:
    from pathlib import Path

WORDS = "the nurse doctor says that he she is kind and was born in Łódź or Köln 🙂 today ."
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
CREATED = 1_700_000_000


def tiny(folder: Path) -> Path:
    """Save a tiny Llama with random weights, a beginning of text and a chat template."""
    tokenizer = byte_level([WORDS] * 3, model_max_length=64)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 0)]
    )
    tokenizer.chat_template = TEMPLATE
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        intermediate_size=64,
        max_position_embeddings=256,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=2,
        pad_token_id=1,
    )
    model = LlamaForCausalLM(config)
    # transformers serve samples only where the model's own configuration does
    model.generation_config.update(do_sample=True, top_k=0)
    return save(folder, model, tokenizer)


class Model:
    """A causal model from a folder, and what can be asked of it."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
        self.lock = threading.Lock()

    @torch.inference_mode()
    def write(self, prompt: str, tokens: int, temperature: float, seed: int):
        """Return the ids of the prompt and those drawn behind it."""
        ids = self.tokenizer(prompt).input_ids
        drawn, chance = [], torch.Generator().manual_seed(seed)
        while len(drawn) < tokens and (not drawn or drawn[-1] != self.tokenizer.eos_token_id):
            logits = self.model(torch.tensor([ids + drawn])).logits[0, -1]
            if temperature:
                weights = (logits / temperature).softmax(0)
                drawn.append(int(torch.multinomial(weights, 1, generator=chance)))
            else:
                drawn.append(int(logits.argmax()))
        return ids, drawn

    @torch.inference_mode()
    def told(self, prompt: str, ids: list[int], drawn: list[int]):
        """Return tokens, offsets and log-probabilities, of the text without its beginning."""
        every = torch.tensor(ids + drawn)
        scores = self.model(every[None]).logits[0].log_softmax(-1)
        values = [None, *scores[:-1].gather(1, every[1:, None])[:, 0].tolist()]
        spans = self.tokenizer(prompt, return_offsets_mapping=True)["offset_mapping"]
        assert spans[0] == (0, 0), "a beginning of text"
        tokens = [prompt[a:b] for a, b in spans]
        for i, span in enumerate(spans[:-1]):
            if span == spans[i + 1]:  # a part of a character
                tokens[i] = "bytes:\\xf0"
        tokens += [self.tokenizer.decode([i]) for i in drawn]
        offsets = [a for a, _ in spans] + [len(prompt)] * len(drawn)
        return {"tokens": tokens[1:], "text_offset": offsets[1:], "token_logprobs": values[1:]}

    def answer(self, path: str, asked: dict, *, usage: bool):
        chat = path.endswith("/chat/completions")
        prompt = asked["messages"][0]["content"] if chat else asked["prompt"]
        with self.lock:
            ids, drawn = self.write(
                prompt, asked.get("max_tokens", 1), asked["temperature"], asked.get("seed", 0)
            )
            told = self.told(prompt, ids, drawn) if asked.get("logprobs") else None
        text = self.tokenizer.decode(drawn, skip_special_tokens=True)
        ended = drawn[-1] == self.tokenizer.eos_token_id
        choice = {"index": 0, "finish_reason": "stop" if ended else "length", "logprobs": told}
        if chat:
            choice["message"] = {"role": "assistant", "content": text}
        else:
            choice["text"] = prompt * bool(asked.get("echo")) + text
        counts = {"prompt_tokens": len(ids), "completion_tokens": len(drawn)}
        counts["total_tokens"] = len(ids) + len(drawn)
        return {"choices": [choice]} | ({"usage": counts} if usage else {})


@contextmanager
def listening(get, post):
    """Answer requests with the status and JSON that come of them; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments) -> None:
            pass

        def reply(self, status: int, answer: dict) -> None:
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.reply(*get())

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.reply(*post(self.path, asked))

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        loop = threading.Thread(target=server.serve_forever, args=(0.02,))
        loop.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            loop.join()


@contextmanager
def served(model: Model, name: str, *, usage: bool = True):
    """Serve a model under a name; yield the address, without /v1."""

    def get():
        entry = {"object": "model", "owned_by": "tests", "max_model_len": 64}
        now = {"id": "other", "created": time.time(), "permission": [time.time()]}
        return 200, {"data": [entry | now, entry | {"id": name, "created": CREATED}, entry | now]}

    def post(path, asked):
        if asked["model"] != name:
            return 404, {"error": {"message": f"no model {asked['model']}"}}
        return 200, model.answer(path, asked, usage=usage)

    with listening(get, post) as address:
        yield address
