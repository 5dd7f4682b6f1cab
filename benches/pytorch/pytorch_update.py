"""One PACE update at the Overcooked shape in plain eager PyTorch, on one thread, for comparison with `pace bench engine`.

20 encounters of 5 episodes of 40 steps: f on every context entry once, prefix means by cumulative sums, g, identifier,
actor, critic, the four losses, backward, clip, Adam. No input is encoded twice and there are no Python loops, so that the
comparison is with efficient PyTorch code.

usage: pytorch_update.py [SECONDS]    prints JSON: the fastest and the median update, in milliseconds
"""

import json
import math
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

ENCOUNTERS, EPISODES, STEPS = 20, 5, 40
OBSERVATION, ACTIONS, WIDTH, HIDDEN, CLASSES = 105, 6, 128, 128, 18
CLIP, VALUE_WEIGHT, ENTROPY_WEIGHT, GRADIENT_CLIP = 0.2, 0.5, 0.03, 15.0


def perceptron(*sizes, last):
    layers = []
    for index, (n_in, n_out) in enumerate(zip(sizes, sizes[1:])):
        layers.append(nn.Linear(n_in, n_out))
        if last or index + 2 < len(sizes):
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


class Pace(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = perceptron(OBSERVATION + ACTIONS, WIDTH, WIDTH, last=True)
        self.g = perceptron(WIDTH, WIDTH, WIDTH, last=True)
        self.identifier = nn.Linear(WIDTH, CLASSES)
        self.actor = perceptron(OBSERVATION + WIDTH, HIDDEN, HIDDEN, ACTIONS, last=False)
        self.critic = perceptron(OBSERVATION + WIDTH, HIDDEN, HIDDEN, 1, last=False)

    def forward(self, entries, observations, inner, outer):
        # An episode has one entry per step and one more at its end.
        features = self.f(entries).view(ENCOUNTERS, EPISODES, STEPS + 1, WIDTH)
        sums = features.cumsum(2)
        episode_means = sums[:, :, -1] / (STEPS + 1)
        finished = episode_means.cumsum(1) - episode_means
        before = F.pad(sums[:, :, : STEPS - 1], (0, 0, 1, 0)) * inner
        pooled = (finished.unsqueeze(2) + before) * outer
        latent = self.g(pooled.reshape(-1, WIDTH))
        # The latent of an empty context is zero.
        latent = latent.view(ENCOUNTERS, -1, WIDTH) * self.not_empty
        latent = latent.reshape(-1, WIDTH)
        both = torch.cat([observations, latent], 1)
        return self.actor(both), self.critic(both).squeeze(1), self.identifier(latent)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    torch.manual_seed(1)
    n = ENCOUNTERS * EPISODES * STEPS
    observations = torch.rand(ENCOUNTERS, EPISODES, STEPS + 1, OBSERVATION)
    actions = torch.randint(ACTIONS, (ENCOUNTERS, EPISODES, STEPS))
    one_hot = F.pad(F.one_hot(actions, ACTIONS).float(), (0, 0, 0, 1))
    entries = torch.cat([observations, one_hot], 3).view(-1, OBSERVATION + ACTIONS)
    decisions = observations[:, :, :STEPS].reshape(n, OBSERVATION).contiguous()
    actions = actions.view(n, 1)
    old_log, old_value = torch.full((n,), -math.log(ACTIONS)), torch.rand(n)
    advantage, target = torch.randn(n), torch.rand(n)
    classes = torch.randint(CLASSES, (ENCOUNTERS,)).repeat_interleave(EPISODES * STEPS)
    steps = torch.arange(STEPS, dtype=torch.float32)
    inner = (1 / steps.clamp(min=1)).view(1, 1, STEPS, 1)
    episodes = torch.arange(EPISODES, dtype=torch.float32).view(1, EPISODES, 1, 1)
    # The current episode counts once it has an entry.
    outer = 1 / (episodes + (steps > 0).view(1, 1, STEPS, 1)).clamp(min=1)

    net = Pace()
    net.not_empty = torch.ones(1, EPISODES * STEPS, 1)
    net.not_empty[:, 0] = 0
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-7)

    def update():
        logits, value, class_logits = net(entries, decisions, inner, outer)
        logs = F.log_softmax(logits, 1)
        ratio = (logs.gather(1, actions).squeeze(1) - old_log).exp()
        surrogate = torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
        entropy = -(logs.exp() * logs).sum(1)
        near = old_value + (value - old_value).clamp(-CLIP, CLIP)
        value_loss = 0.5 * torch.max((value - target) ** 2, (near - target) ** 2)
        loss = (VALUE_WEIGHT * value_loss - surrogate - ENTROPY_WEIGHT * entropy).mean()
        loss = loss + F.cross_entropy(class_logits, classes)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), GRADIENT_CLIP)
        optimiser.step()

    for _ in range(5):
        update()
    times = []
    begin = time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        update()
        times.append(time.perf_counter() - start)
    times.sort()
    figures = {"ms": times[0] * 1e3, "median_ms": times[len(times) // 2] * 1e3, "rounds": len(times)}
    print(json.dumps(figures | {"decisions": n, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
