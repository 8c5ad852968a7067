"""vLLM's and Ollama's OpenAI-compatible interfaces on loopback, with a real causal model behind.

What they answer, and what they leave out, is as in their sources: vLLM's
``vllm/entrypoints/openai/completion`` and ``vllm/v1/engine/logprobs.py`` (0.11 and later), Ollama's
``openai/openai.go`` and ``server/routes.go`` (0.12.11 and later).
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from uuid import uuid4

import torch
from models.served import listening

SPACE = "▁"
BROKEN = "\ufffd"


def decoded(tokenizer, ids):
    """Return each token as vLLM's log-probabilities name it, decoded by itself.

    A part of a character is nothing, and the token that completes it has all of it. Spaces that
    decoding drops from a token of SentencePiece are put back; not from the first of all.
    """
    names, begun = [], []
    for place, token in enumerate(ids):
        text = tokenizer.decode([token])
        if begun or text.endswith(BROKEN):
            begun.append(token)
            text = tokenizer.decode(begun)
            if text.endswith(BROKEN):
                names.append("")
                continue
            begun = []
        piece = tokenizer.convert_ids_to_tokens(token)
        spaces = len(piece) - len(piece.lstrip(SPACE))
        missing = spaces - (len(text) - len(text.lstrip(" ")))
        names.append(" " * max(0, missing if place else 0) + text)
    return names


@torch.inference_mode()
def nats(model, ids):
    return model.model(torch.tensor([ids])).logits[0].log_softmax(-1)


def vllm(model, name, limit=64):
    """Return what vLLM answers: status and body."""

    def listed():
        own = {"id": name, "object": "model", "created": time.time(), "owned_by": "vllm"}
        own |= {"root": name, "parent": None, "max_model_len": limit}
        return 200, {"object": "list", "data": [own | {"permission": [{"id": uuid4().hex}]}]}

    def wrong(status, kind, message):
        error = {"message": message, "type": kind, "param": None, "code": status}
        return status, {"error": error}

    def answer(path, asked):
        if asked["model"] != name:
            return wrong(404, "NotFoundError", f"The model `{asked['model']}` does not exist.")
        chat = path.endswith("/chat/completions")
        prompt = asked["prompt"] if not chat else written(model, asked["messages"])
        if not prompt:
            return wrong(400, "BadRequestError", "Either prompt or prompt_embeds must be provided")
        if len(model.tokenizer(prompt).input_ids) + asked["max_tokens"] > limit:
            return wrong(400, "BadRequestError", f"maximum context length is {limit} tokens")
        ids, drawn = draw(model, asked, prompt)
        text = model.tokenizer.decode(drawn, skip_special_tokens=True)
        choice = {"index": 0, "finish_reason": ended(model, drawn), "stop_reason": None}
        choice |= {"logprobs": None, "token_ids": None}
        if chat:
            choice["message"] = {"role": "assistant", "content": text, "tool_calls": []}
        else:
            choice |= {"prompt_logprobs": None, "prompt_token_ids": None}
            choice["text"] = (prompt if asked.get("echo") else "") + text
            if asked.get("logprobs") is not None:
                choice["logprobs"] = told(ids if asked.get("echo") else [], ids, drawn)
        counts = {"prompt_tokens": len(ids), "completion_tokens": len(drawn)}
        counts |= {"total_tokens": len(ids) + len(drawn), "prompt_tokens_details": None}
        return 200, {
            "id": f"cmpl-{uuid4().hex}",
            "object": "chat.completion" if chat else "text_completion",
            "created": int(time.time()),
            "model": name,
            "choices": [choice],
            "service_tier": None,
            "system_fingerprint": None,
            "usage": counts,
            "kv_transfer_params": None,
        }

    def told(echoed, ids, drawn):
        every = [*ids, *drawn]
        scores = nats(model, every)
        values = [None, *(max(scores[n, t].item(), -9999.0) for n, t in enumerate(every[1:]))]
        names = [*decoded(model.tokenizer, ids), *decoded(model.tokenizer, drawn)]
        first = 0 if echoed else len(ids)
        names, values = names[first:], values[first:]
        offsets = [sum(map(len, names[:n])) for n in range(len(names))]
        best = [None if v is None else {t: v} for t, v in zip(names, values, strict=True)]
        told = {"text_offset": offsets, "token_logprobs": values, "tokens": names}
        return told | {"top_logprobs": best}

    return listed, answer


def ollama(model, name):
    """Return what Ollama answers: status and body; ``name`` is without its tag, ``latest``."""

    def listed():
        own = {"id": f"{name}:latest", "object": "model", "created": 1_700_000_000}
        return 200, {"object": "list", "data": [own | {"owned_by": "library"}]}

    def answer(path, asked):
        if asked["model"].removesuffix(":latest") != name:
            error = {"message": f"model '{asked['model']}' not found", "type": "not_found_error"}
            return 404, {"error": error | {"param": None, "code": None}}
        chat = path.endswith("/chat/completions")
        # a completion is a chat of one message, unless the model's template is the prompt alone
        messages = asked["messages"] if chat else [{"role": "user", "content": asked["prompt"]}]
        ids, drawn = draw(model, asked, written(model, messages))  # top_k and echo: not read
        text = model.tokenizer.decode(drawn, skip_special_tokens=True)
        choice = {"index": 0, "finish_reason": ended(model, drawn)}
        if chat:
            choice["message"] = {"role": "assistant", "content": text}
            if asked.get("logprobs") is True:  # of what is written, from 0.12.11 on
                choice["logprobs"] = {"content": content(model, ids, drawn)}
        else:
            choice["text"] = text  # logprobs are taken, and left out of the answer
        counts = {"prompt_tokens": len(ids), "completion_tokens": len(drawn)}
        return 200, {
            "id": "chatcmpl-1" if chat else "cmpl-1",
            "object": "chat.completion" if chat else "text_completion",
            "created": int(time.time()),
            "model": asked["model"],
            "system_fingerprint": "fp_ollama",
            "choices": [choice],
            "usage": counts | {"total_tokens": len(ids) + len(drawn)},
        }

    return listed, answer


def draw(model, asked, prompt):
    with model.lock:
        return model.write(
            prompt, asked["max_tokens"], asked["temperature"], asked.get("seed") or 0
        )


def ended(model, drawn):
    return "stop" if drawn[-1] == model.tokenizer.eos_token_id else "length"


def written(model, messages):
    return model.tokenizer.apply_chat_template(messages, tokenize=False)


def content(model, ids, drawn):
    scores = nats(model, [*ids, *drawn])[len(ids) - 1 :]
    names = decoded(model.tokenizer, drawn)
    pairs = zip(drawn, names, scores[:-1], strict=True)
    return [
        {"token": text, "logprob": row[token].item(), "bytes": list(text.encode())}
        for token, text, row in pairs
    ]


@contextmanager
def served(kind, model, name):
    """Serve a model in one of these ways; yield the address without /v1, and all requests."""
    listed, answer = kind(model, name)
    requests = []

    def post(path, asked):
        requests.append(asked)
        return answer(path, asked)

    with listening(listed, post) as address:
        yield address, requests
