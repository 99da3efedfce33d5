#!/usr/bin/env python3
"""Records what a PyTorch optimizer does, for `dsoptc replay`.

    tools/record_torch.py torch.optim.AdamW --arg lr=1e-2 -o adamw.vec
    tools/record_torch.py my_optimizers.py:Sophia --arg rho=0.04 --tensor w=4,6 --tensor b=6 -o sophia.vec
    dsoptc replay sophia.opt sophia.vec --set lr=@lr --state m=exp_avg

The class is anything with the interface of torch.optim.Optimizer: the constructor takes a list of
parameters (or of (name, parameter), with --named) and keyword arguments, step() reads .grad and
writes the parameters. It runs on the CPU, on small tensors with seeded gradients; the file holds
the arguments (those of the first parameter group, after the constructor), the parameters before and
after every step, every gradient, and the optimizer's state after the last step, in hexadecimal
floating point: exact. The format is docs/replay.md's. Nothing else than torch is needed.

The same seed, tensors and steps give the same initial parameters and gradients for every class and
both dtypes (those of f32 are exact in f64), so that two libraries' files can be compared.
"""

import argparse
import ast
import importlib
import importlib.util
import os
import sys

try:
    import torch
except ImportError:
    sys.exit("record_torch: this tool runs PyTorch optimizers; install it: pip install torch")


def fail(text):
    sys.exit(f"record_torch: {text}")


# ---- what is recorded ---------------------------------------------------------------------------


def load_class(spec):
    """'package.module.Class' or 'path/file.py:Class'."""
    if ":" in spec:
        path, name = spec.rsplit(":", 1)
        if not os.path.exists(path):
            fail(f"{path}: no such file")
        loader = importlib.util.spec_from_file_location("recorded_optimizer", path)
        module = importlib.util.module_from_spec(loader)
        sys.modules["recorded_optimizer"] = module
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        loader.loader.exec_module(module)
    else:
        if "." not in spec:
            fail(f"'{spec}': write MODULE.CLASS (torch.optim.AdamW) or FILE.py:CLASS")
        path, name = spec.rsplit(".", 1)
        try:
            module = importlib.import_module(path)
        except ImportError as e:
            fail(f"cannot import {path}: {e}")
    if not hasattr(module, name):
        fail(f"{path} has no '{name}'")
    return getattr(module, name), module


def parse_value(text):
    """A Python literal; 'true', 'false' and 'none' in any case; else the word itself."""
    words = {"true": True, "false": False, "none": None, "inf": float("inf")}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def parse_pairs(pairs, what):
    out = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            fail(f"{what} '{pair}': write NAME=VALUE")
        if name in out:
            fail(f"{what} '{name}' is given twice")
        out[name] = value
    return out


def parse_tensors(pairs):
    shapes = {}
    for name, dims in parse_pairs(pairs, "--tensor").items():
        try:
            shapes[name] = [int(d) for d in dims.split(",")] if dims not in ("", "scalar") else []
        except ValueError:
            fail(f"--tensor {name}={dims}: dims are numbers with commas, or 'scalar'")
        if any(c.isspace() for c in name):
            fail(f"--tensor '{name}': a name has no blanks")
        if any(d < 0 for d in shapes[name]):
            fail(f"--tensor {name}={dims}: a negative dimension")
    return shapes


def parse_steps(items, what, shapes, last):
    """'3:w' -> {(3, 'w')}; '3' is every tensor."""
    out = set()
    for item in items:
        step, _, name = item.partition(":")
        if not step.isdigit() or not 1 <= int(step) <= last:
            fail(f"{what} {item}: the steps are 1 to {last}")
        if name and name not in shapes:
            fail(f"{what} {item}: there is no tensor '{name}'")
        out.update((int(step), n) for n in ([name] if name else shapes))
    return out


# ---- the format ---------------------------------------------------------------------------------


def number(x):
    x = float(x)
    return x.hex() if x == x and abs(x) != float("inf") else repr(x)


def word(x):
    if x is None or isinstance(x, bool):
        return str(x).lower()
    if isinstance(x, int) or isinstance(x, float):
        return number(x)
    if isinstance(x, torch.Tensor) and x.numel() == 1:
        return number(x.item())
    text = " ".join(str(x).split())
    return text if text else "''"


def values(t):
    return " ".join(number(x) for x in t.detach().reshape(-1).tolist())


# Not hyperparameters: what the group holds, and how a library runs the same mathematics.
NOT_HYPER = ("params", "param_names", "foreach", "fused", "capturable", "differentiable")


def hyper_lines(group):
    for name, value in sorted(group.items()):
        if name in NOT_HYPER:
            continue
        if isinstance(value, (list, tuple)):
            for i, item in enumerate(value):
                yield f"hyper {name}[{i}] {word(item)}"
        elif isinstance(value, torch.Tensor) and value.numel() != 1:
            continue
        elif not callable(value):
            yield f"hyper {name} {word(value)}"


def state_lines(tensor, state, prefix=""):
    for name, value in sorted(state.items(), key=lambda item: str(item[0])):
        slot = prefix + "_".join(str(name).split())
        if isinstance(value, torch.Tensor):
            if value.is_complex():
                continue
            dims = ",".join(map(str, value.shape)) if value.dim() else "scalar"
            yield f"state {tensor} {slot} {dims} {values(value.double())}".rstrip()
        elif isinstance(value, (bool, int, float)):
            yield f"state {tensor} {slot} scalar {number(value)}"
        elif isinstance(value, dict):
            yield from state_lines(tensor, value, slot + ".")
        elif isinstance(value, (list, tuple)):
            yield from state_lines(tensor, dict(enumerate(value)), slot + ".")


# ---- the run ------------------------------------------------------------------------------------


class Run:
    """Parameters and gradients of one seed, and the optimizer over them."""

    def __init__(self, options):
        self.options = options
        self.dtype = {"f64": torch.float64, "f32": torch.float32}[options.dtype]
        self.generator = torch.Generator().manual_seed(options.seed)
        self.params = {}
        for name, shape in options.shapes.items():
            self.params[name] = torch.nn.Parameter(self.draw(shape))

    def draw(self, shape):
        # drawn in f32 for both dtypes, so that f64 files start from the same numbers
        return torch.randn(shape, generator=self.generator, dtype=torch.float32).to(self.dtype)

    def make(self, cls):
        named = list(self.params.items())
        arguments = named if self.options.named else [p for _, p in named]
        try:
            return cls(arguments, **self.options.args)
        except TypeError as e:
            fail(f"{self.options.spec}(params, {self.options.args}): {e}")

    def set_gradients(self, step):
        for name, p in self.params.items():
            g = self.draw(p.shape) * self.options.grad_scale
            if (step, name) in self.options.zero:
                g = torch.zeros_like(g)
            if (step, name) in self.options.bad and g.numel():
                g.view(-1)[0] = float("inf")
            p.grad = None if (step, name) in self.options.none else g


def call_step(optimizer, options, loss):
    """With --loss the step gets a closure that returns the loss and leaves the gradients alone."""
    if loss is None:
        optimizer.step()
    elif options.loss_argument:
        optimizer.step(**{options.loss_argument: loss})
    else:
        optimizer.step(lambda: torch.tensor(loss, dtype=torch.float64))


def record(options, cls, source):
    """Yields the lines of the file."""
    run = Run(options)
    torch.set_default_dtype(run.dtype)
    torch.manual_seed(options.seed)
    optimizer = run.make(cls)
    yield "# dsopt vector 1"
    yield f"rule {options.rule or cls.__name__.lower()}"
    yield f"source {source}"
    yield f"dtype {options.dtype}"
    yield from hyper_lines(optimizer.param_groups[0])
    before = dict(optimizer.param_groups[0])
    yield f"note recorded with seed {options.seed}, arguments {options.args or 'none'}"
    yield from (f"note {note}" for note in options.note)
    yield f"steps {options.steps}"
    for name, p in run.params.items():
        yield f"tensor {name} {','.join(map(str, p.shape)) or 'scalar'}"
    for name, p in run.params.items():
        yield f"p 0 {name} {values(p)}".rstrip()
    for step in range(1, options.steps + 1):
        run.set_gradients(step)
        for name, p in run.params.items():
            yield f"g {step} {name} {'none' if p.grad is None else values(p.grad)}".rstrip()
        loss = options.loss[(step - 1) % len(options.loss)] if options.loss else None
        if loss is not None:
            yield f"scalar value_{step} {number(loss)}"
        call_step(optimizer, options, loss)
        for name, p in run.params.items():
            if p.dtype != run.dtype:
                fail(f"the optimizer made '{name}' {p.dtype}: not {run.dtype}")
            yield f"p {step} {name} {values(p)}".rstrip()
    for name, p in run.params.items():
        yield from state_lines(name, optimizer.state.get(p, {}))
    for name, value in sorted(optimizer.param_groups[0].items()):
        # what the library keeps in the group: a step count, an estimate
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value != before.get(name):
            yield f"scalar {name} {number(value)}"


def parse_options():
    p = argparse.ArgumentParser(
        description="Record a trajectory of a torch.optim-style optimizer for 'dsoptc replay'.")
    p.add_argument("spec", metavar="CLASS", help="torch.optim.AdamW, package.Class or file.py:Class")
    p.add_argument("--arg", action="append", default=[], metavar="NAME=VALUE",
                   help="an argument of the constructor: lr=1e-3, betas=(0.9,0.99), amsgrad=true")
    p.add_argument("--tensor", action="append", default=[], metavar="NAME=DIMS",
                   help="a parameter: w=4,6 (default: w=4,6 b=7 conv=3,2,5 s=scalar)")
    p.add_argument("--steps", type=int, default=16)
    p.add_argument("--dtype", choices=["f64", "f32"], default="f64",
                   help="f64 (default) says what the rule means, f32 how the library rounds")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--grad-scale", type=float, default=0.5, help="of the normal gradients")
    p.add_argument("--none", action="append", default=[], metavar="STEP[:TENSOR]",
                   help="no gradient at that step")
    p.add_argument("--zero", action="append", default=[], metavar="STEP[:TENSOR]", help="gradient 0")
    p.add_argument("--bad", action="append", default=[], metavar="STEP[:TENSOR]",
                   help="an infinity in the gradient")
    p.add_argument("--loss", type=float, nargs="+", metavar="X",
                   help="losses, one a step, given to step() by a closure")
    p.add_argument("--loss-argument", metavar="NAME", help="...or as step(NAME=X)")
    p.add_argument("--named", action="store_true", help="give the constructor (name, parameter) pairs")
    p.add_argument("--rule", help="name of the rule in the file (default: the class's, lower case)")
    p.add_argument("--note", action="append", default=[], help="a line for people")
    p.add_argument("-o", "--output", metavar="FILE", help="default: standard output")
    o = p.parse_args()
    o.args = {k: parse_value(v) for k, v in parse_pairs(o.arg, "--arg").items()}
    o.shapes = parse_tensors(o.tensor or ["w=4,6", "b=7", "conv=3,2,5", "s=scalar"])
    if o.steps < 1:
        fail("--steps: at least 1")
    o.none = parse_steps(o.none, "--none", o.shapes, o.steps)
    o.zero = parse_steps(o.zero, "--zero", o.shapes, o.steps)
    o.bad = parse_steps(o.bad, "--bad", o.shapes, o.steps)
    return o


def main():
    options = parse_options()
    torch.set_num_threads(1)
    cls, module = load_class(options.spec)
    library = cls.__module__.split(".")[0]
    if library == "recorded_optimizer":
        library = os.path.splitext(os.path.basename(module.__file__))[0]
    version = getattr(sys.modules.get(library), "__version__", "unversioned").split("+")[0]
    text = "\n".join(record(options, cls, f"{library} {version}: {options.spec}")) + "\n"
    if not options.output:
        sys.stdout.write(text)
        return
    part = options.output + ".part"
    with open(part, "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(part, options.output)


if __name__ == "__main__":
    main()
