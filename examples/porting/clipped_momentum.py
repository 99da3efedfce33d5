"""A rule as people have them: a torch.optim class of their own. docs/porting.md ports it."""

import torch


class ClippedMomentum(torch.optim.Optimizer):
    """Momentum whose update is no longer than a fraction of the parameter's norm."""

    def __init__(self, params, lr=1e-2, beta=0.9, trust=0.1, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, beta=beta, trust=trust, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["buf"] = torch.zeros_like(p)
                state["buf"].mul_(group["beta"]).add_(p.grad)
                update = state["buf"] * group["lr"]
                longest = group["trust"] * p.norm()
                if update.norm() > longest:
                    update *= longest / update.norm()
                p.mul_(1 - group["lr"] * group["weight_decay"]).sub_(update)
