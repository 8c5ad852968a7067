"""An OpenAI-compatible server on loopback, with a real causal model behind it.

What it answers, and what it leaves out, is as in vLLM's ``vllm/entrypoints/openai/completion`` and
``vllm/v1/engine/logprobs.py`` (0.11 and later).
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import torch
from models.tiny import byte_level, save
from tokenizers import processors
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

WORDS = "the nurse doctor says that he she is kind and was born in Łódź or Köln 🙂 today ."
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
SPACE, BROKEN = "▁", "\ufffd"
LIMIT = 64  # tokens that the model takes


def tiny(folder):
    """Save a tiny Llama with random weights, a beginning of text and a chat template."""
    tokenizer = byte_level([WORDS] * 3, model_max_length=LIMIT)
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
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=2,
        pad_token_id=1,
    )
    return save(folder, LlamaForCausalLM(config), tokenizer)


class Model:
    """A causal model from a folder, and its responses."""

    def __init__(self, folder) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
        self.lock = threading.Lock()

    @torch.inference_mode()
    def nats(self, ids):
        return self.model(torch.tensor([ids])).logits[0].log_softmax(-1)

    @torch.inference_mode()
    def write(self, prompt, tokens, temperature, seed):
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

    def token_texts(self, ids):
        """Return each token decoded by itself, with the spaces that decoding drops.

        A part of a character is empty, and the token that completes it has all of it.
        """
        names, begun = [], []
        for place, token in enumerate(ids):
            text = self.tokenizer.decode([*begun, token])
            if text.endswith(BROKEN):
                begun.append(token)
                names.append("")
                continue
            begun = []
            piece = self.tokenizer.convert_ids_to_tokens(token)
            spaces = len(piece) - len(piece.lstrip(SPACE)) if place else 0
            missing = max(0, spaces - (len(text) - len(text.lstrip(" "))))
            names.append(" " * missing + text)
        return names

    def scores(self, ids, drawn):
        rows = self.nats([*ids, *drawn])
        values = [rows[n, token].item() for n, token in enumerate([*ids, *drawn][1:])]
        names = [*self.token_texts(ids), *self.token_texts(drawn)]
        offsets = [sum(map(len, names[:n])) for n in range(len(names))]
        return {"tokens": names, "text_offset": offsets, "token_logprobs": [None, *values]}

    def complete(self, path, body):
        """Return status and response to a prompt."""
        chat = path.endswith("/chat/completions")
        prompt = body.get("prompt")
        if chat:
            prompt = self.tokenizer.apply_chat_template(body["messages"], tokenize=False)
        if len(self.tokenizer(prompt).input_ids) + body["max_tokens"] > LIMIT:
            return 400, {"error": {"message": f"maximum context length is {LIMIT} tokens"}}
        with self.lock:
            ids, drawn = self.write(
                prompt, body["max_tokens"], body["temperature"], body.get("seed") or 0
            )
        text = self.tokenizer.decode(drawn, skip_special_tokens=True)
        finished = drawn[-1] == self.tokenizer.eos_token_id
        choice = {"index": 0, "finish_reason": "stop" if finished else "length", "logprobs": None}
        if chat:
            choice["message"] = {"role": "assistant", "content": text}
        else:
            choice["text"] = prompt * bool(body.get("echo")) + text
            if body.get("logprobs") is not None:
                choice["logprobs"] = self.scores(ids, drawn)
        counts = {"prompt_tokens": len(ids), "completion_tokens": len(drawn)}
        counts["total_tokens"] = len(ids) + len(drawn)
        return 200, {"choices": [choice], "usage": counts}


@contextmanager
def served(model, script=lambda number, body: None):
    """Serve a model as ``tiny``; yield the address and the requests so far.

    ``script`` may return status and response to the request of a number and body instead.
    """
    server = SimpleNamespace(requests=[])

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments) -> None:
            pass

        def reply(self, status, response) -> None:
            body = response if isinstance(response, bytes) else json.dumps(response).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            if self.path != "/v1/models":
                return self.reply(404, {})
            own = {"id": "tiny", "object": "model", "created": time.time(), "owned_by": "vllm"}
            own |= {"root": "tiny", "parent": None, "max_model_len": LIMIT}
            return self.reply(200, {"object": "list", "data": [own]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.requests.append((self.path, self.headers, body))
            answer = script(len(server.requests), body)
            self.reply(*(answer or model.complete(self.path, body)))

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        loop = threading.Thread(target=http.serve_forever, args=(0.02,))
        loop.start()
        server.address = f"http://127.0.0.1:{http.server_port}"
        try:
            yield server
        finally:
            http.shutdown()
            loop.join()
