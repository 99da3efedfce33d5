"""PyTorch as a contestant of bench_step: takes steps when told to, and answers with their time.

    python bench_torch.py RULE fused|foreach DTYPE THREADS TENSORS ELEMENTS
    <- ready              -> 3 (steps)          <- 1234567 (nanoseconds)
"""
import sys
import time

import torch


def make(rule, mode, params):
    kind = {"fused": mode == "fused", "foreach": mode == "foreach"}
    if rule == "adamw":
        return torch.optim.AdamW(params, lr=1e-3, **kind)
    if rule == "sgd-momentum":
        return torch.optim.SGD(params, lr=1e-3, momentum=0.9, **kind)
    raise SystemExit(f"torch has no {rule}")


def main():
    rule, mode, dtype, threads, tensors, elements = sys.argv[1:]
    torch.set_num_threads(int(threads))
    each = int(elements) // int(tensors)
    kind = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]
    params = [torch.nn.Parameter(torch.rand(each, dtype=torch.float32).to(kind))
              for _ in range(int(tensors))]
    for p in params:
        p.grad = (torch.rand(each, dtype=torch.float32) * 0.01).to(kind)
    optimizer = make(rule, mode, params)
    optimizer.step()
    print("ready", flush=True)
    for line in sys.stdin:
        start = time.perf_counter_ns()
        for _ in range(int(line)):
            optimizer.step()
        print(time.perf_counter_ns() - start, flush=True)


main()
