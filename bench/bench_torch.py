"""PyTorch as a contestant of bench_step: takes steps when told to, and answers with their time.

    python bench_torch.py RULE fused|foreach DTYPE THREADS TENSORS ELEMENTS ROWS (0: vectors)
    <- ready              -> 3 (steps)          <- 1234567 (nanoseconds)
"""
import sys
import time

import torch


class Clipped:
    def __init__(self, params, optimizer, mode):
        self.params, self.optimizer, self.mode = params, optimizer, mode

    def step(self):
        torch.nn.utils.clip_grad_norm_(self.params, 1e9, foreach=self.mode == "foreach")
        self.optimizer.step()


def make(rule, mode, params):
    kind = {"fused": mode == "fused", "foreach": mode == "foreach"}
    if rule == "adamw":
        return torch.optim.AdamW(params, lr=1e-3, **kind)
    if rule == "sgd-momentum":
        return torch.optim.SGD(params, lr=1e-3, momentum=0.9, **kind)
    if rule == "adamw-clip":
        return Clipped(params, torch.optim.AdamW(params, lr=1e-3, **kind), mode)
    if rule == "adafactor" and mode == "foreach":
        return torch.optim.Adafactor(params, foreach=True)
    raise SystemExit(f"torch has no {rule}")


def main():
    rule, mode, dtype, threads, tensors, elements, rows = sys.argv[1:]
    torch.set_num_threads(int(threads))
    each = int(elements) // int(tensors)
    shape = (int(rows), each // int(rows)) if int(rows) else (each,)
    kind = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]
    params = [torch.nn.Parameter(torch.rand(shape, dtype=torch.float32).to(kind))
              for _ in range(int(tensors))]
    for p in params:
        p.grad = (torch.rand(shape, dtype=torch.float32) * 0.01).to(kind)
    optimizer = make(rule, mode, params)
    optimizer.step()
    print("ready", flush=True)
    for line in sys.stdin:
        start = time.perf_counter_ns()
        for _ in range(int(line)):
            optimizer.step()
        print(time.perf_counter_ns() - start, flush=True)


main()
