#!/usr/bin/env python3
"""Public programs with rondo.capture in the place of torch.cuda.graph, side by side: the generation
loop of transformers with its static cache, and a training loop of torch's.

    bench/peers/python_adoption.py [--small] [generate|train]     needs torch, transformers, a GPU

Each way of a program is one function below, whole; its lines are counted from its source, and the
results of all ways are compared. Memory is what the GPU has less in a step, at the most, than before
the way began with torch's cache empty: weights of the training, caches, graphs and their pools.
"""
# SPDX-License-Identifier: Apache-2.0
import gc
import inspect
import statistics
import sys
import time

import torch

import rondo

SMALL = "--small" in sys.argv
COUNT = 16 if SMALL else 128  # tokens, and training steps


# ---- generation: transformers' static cache -----------------------------------------------------


def generate_eager(model, make_cache, prompt, clock):
    cache = make_cache()
    token = model(prompt, past_key_values=cache).logits[:, -1:].argmax(-1)
    tokens = [token.clone()]
    for _ in range(COUNT):
        with clock:
            token.copy_(model(token, past_key_values=cache).logits[:, -1:].argmax(-1))
            tokens.append(token.clone())
    return torch.cat(tokens, 1)


def generate_torch(model, make_cache, prompt, clock):
    cache = make_cache()
    token = model(prompt, past_key_values=cache).logits[:, -1:].argmax(-1)
    tokens = [token.clone()]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            token.copy_(model(token, past_key_values=cache).logits[:, -1:].argmax(-1))
            tokens.append(token.clone())
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        token.copy_(model(token, past_key_values=cache).logits[:, -1:].argmax(-1))
    for _ in range(COUNT - 2):
        with clock:
            graph.replay()
            tokens.append(token.clone())
    return torch.cat(tokens, 1)


def generate_rondo(model, make_cache, prompt, clock):
    cache = make_cache()
    token = model(prompt, past_key_values=cache).logits[:, -1:].argmax(-1)
    tokens = [token.clone()]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            token.copy_(model(token, past_key_values=cache).logits[:, -1:].argmax(-1))
            tokens.append(token.clone())
    torch.cuda.current_stream().wait_stream(stream)
    with rondo.capture(stream) as graph:
        token.copy_(model(token, past_key_values=cache).logits[:, -1:].argmax(-1))
    current = torch.cuda.current_stream()
    for _ in range(COUNT - 2):
        with clock:
            graph.replay(current)
            tokens.append(token.clone())
    return torch.cat(tokens, 1)


def prepare_generation(dtype):
    from transformers import LlamaConfig, LlamaForCausalLM, StaticCache
    torch.manual_seed(0)
    size = 256 if SMALL else 2048
    config = LlamaConfig(
        vocab_size=32000, hidden_size=size, intermediate_size=size * 11 // 4,
        num_hidden_layers=4 if SMALL else 16, num_attention_heads=size // 64,
        num_key_value_heads=size // 64, max_position_embeddings=1024)
    model = LlamaForCausalLM(config).to(dtype).cuda().eval()
    prompt = torch.randint(0, 32000, (1, 32), device="cuda")

    def make_cache():
        return StaticCache(config=config, max_cache_len=512)

    return lambda way, clock: torch.no_grad()(way)(model, make_cache, prompt, clock)


# ---- training: torch ----------------------------------------------------------------------------


def make_training():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
    model = torch.nn.Sequential(torch.nn.Embedding(1000, 256), torch.nn.TransformerEncoder(layer, 4),
                                torch.nn.Linear(256, 1000)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=True)
    x = torch.randint(0, 1000, (COUNT, 8, 64), generator=torch.Generator().manual_seed(1))
    return model, optimizer, x.pin_memory()


def compute_loss(model, x):
    return torch.nn.functional.cross_entropy(model(x).flatten(0, 1), x.roll(-1, 1).flatten())


def train_eager(make, clock):
    model, optimizer, data = make()
    batch, losses = data[0].cuda(), []
    for rows in data:
        with clock:
            batch.copy_(rows, non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            loss = compute_loss(model, batch)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach().clone())
    return torch.stack(losses)


def train_torch(make, clock):
    model, optimizer, data = make()
    batch, losses = data[0].cuda(), []

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = compute_loss(model, batch)
        loss.backward()
        optimizer.step()
        return loss.detach()

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for rows in data[:3]:
            batch.copy_(rows, non_blocking=True)
            losses.append(step().clone())
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        loss = step()
    for rows in data[3:]:
        with clock:
            batch.copy_(rows, non_blocking=True)
            graph.replay()
            losses.append(loss.clone())
    return torch.stack(losses)


def train_rondo(make, clock):
    model, optimizer, data = make()
    batch, losses = data[0].cuda(), []

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = compute_loss(model, batch)
        loss.backward()
        optimizer.step()
        return loss.detach()

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for rows in data[:3]:
            batch.copy_(rows, non_blocking=True)
            losses.append(step().clone())
    torch.cuda.current_stream().wait_stream(stream)
    with rondo.capture(stream) as graph:
        loss = step()
    current = torch.cuda.current_stream()
    for rows in data[3:]:
        with clock:
            batch.copy_(rows, non_blocking=True)
            graph.replay(current)
            losses.append(loss.clone())
    return torch.stack(losses)


# ---- what breaks, and how it is said ------------------------------------------------------------


def ask_for_a_value(x):
    return x * x.sum().item()


def copy_to_the_host(x):
    return x.cpu()


def copy_from_plain_memory(x):
    return x + torch.arange(x.numel()).to("cuda", non_blocking=True)


def wait_for_the_gpu(x):
    torch.cuda.synchronize()
    return x


def drop_out(x):
    return torch.nn.functional.dropout(x, 0.5)


def select(x):
    return x[x > 0]


def say(error):
    lines = str(error).strip().splitlines()
    text = [f"{type(error).__name__}: {lines[0] if lines else ''}"]
    for note in getattr(error, "__notes__", []):
        text += [line.strip() for line in note.splitlines() if line.strip().startswith(("the capture", "call", "cure"))]
    text += [line.strip() for line in lines[1:] if line.strip().startswith(("call", "cure"))]
    return text


def show_break(step, name):
    x = torch.ones(64, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream):
            step(x)
        torch.cuda.synchronize()
    except Exception as error:
        print(f"{step.__name__:24} {name:7} already eagerly: " + say(error)[0][:140], flush=True)
        return
    try:
        with (rondo.capture(stream) if name == "rondo" else
              torch.cuda.graph(torch.cuda.CUDAGraph(), stream=stream)):
            step(x)
        said = ["recorded"]
    except Exception as error:
        said = say(error)
    try:  # whether the program can go on
        torch.cuda.synchronize()
        assert (x + 1).sum().item() == 128
        torch.cuda.empty_cache()
        said.append("(the program goes on)")
    except Exception as error:
        said.append(f"(and then: {type(error).__name__}: {str(error).splitlines()[0]})")
    indent = "\n" + " " * 32
    print(f"{step.__name__:24} {name:7} " + indent.join(line[:160] for line in said), flush=True)


def show_breaks():
    for name in ("rondo", "torch"):  # torch last: what a failed capture of its leaves behind stays
        for step in (drop_out, ask_for_a_value, copy_to_the_host, copy_from_plain_memory,
                     wait_for_the_gpu, select):
            show_break(step, name)
        gc.collect()


# ---- measuring ----------------------------------------------------------------------------------


class Clock:
    """Wall time of a step with its wait, and of the calling thread alone."""

    def __init__(self):
        self.whole, self.calls, self.least_free = [], [], 1 << 62

    def __enter__(self):
        torch.cuda.synchronize()
        self.begin = time.perf_counter_ns()

    def __exit__(self, *_):
        self.called = time.perf_counter_ns()
        torch.cuda.synchronize()
        self.whole.append((time.perf_counter_ns() - self.begin) / 1e3)
        self.calls.append((self.called - self.begin) / 1e3)
        self.least_free = min(self.least_free, torch.cuda.mem_get_info()[0])


def count_lines(way):
    lines = [line.strip() for line in inspect.getsource(way).splitlines()]
    return sum(bool(line) and line != "with clock:" for line in lines)


def settle():
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info()[0]


def compare(title, run, ways):
    print(f"\n{title}: median of the steps, us\n"
          f"{'way':16} {'lines':>5} {'step':>9} {'p99':>9} {'calling':>9} {'MiB':>7}  result")
    first = None
    for way in (ways[0], *ways):  # the first for kernels that are loaded, and libraries' workspaces
        before, clock = settle(), Clock()
        try:
            result = run(way, clock)
            held = (before - clock.least_free) / 2**20
        except Exception as error:
            print(f"{way.__name__:16} FAILED: " + "; ".join(say(error))[:600])
            continue
        if first is None:
            first = result
            continue
        same = "the same bits" if torch.equal(first, result) else (
            f"differs by {(first.float() - result.float()).abs().max().item():.2e}")
        whole, calls = clock.whole[5:], clock.calls[5:]
        print(f"{way.__name__:16} {count_lines(way):5} {statistics.median(whole):9.1f} "
              f"{sorted(whole)[len(whole) * 99 // 100]:9.1f} {statistics.median(calls):9.1f} {held:7.1f}  {same}",
              flush=True)
        del result


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    print(f"torch {torch.__version__}, rondo {rondo.__version__}, {torch.cuda.get_device_name()}, "
          f"Python {sys.version.split()[0]}")
    if not names or "generate" in names:
        # In f16 eager work does not repeat itself to the bit; in f32 all have the same.
        for dtype in (torch.float16, torch.float32):
            compare(f"generation, transformers' static cache, {dtype}", prepare_generation(dtype),
                    (generate_eager, generate_eager, generate_torch, generate_rondo, generate_rondo))
    if not names or "train" in names:
        compare("training, torch", lambda way, clock: way(make_training, clock),
                (train_eager, train_torch, train_rondo))
    if not names or "breaks" in names:
        print("\nwhat breaks, and how it is said")
        show_breaks()


if __name__ == "__main__":
    main()
