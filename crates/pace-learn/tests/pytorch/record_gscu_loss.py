"""Records the whole loss of GSCU's conditional policy with an LSTM and its gradients as PyTorch computes them, for a small network
on random episodes.

Run: pip install torch; python record_gscu_loss.py > gscu_loss.json

Every window is written out with its zeros, decision by decision. Weights are stored input by input (PyTorch's transposed).
"""

import json

import torch
from torch.nn.functional import log_softmax, one_hot, relu

torch.manual_seed(13)
torch.set_default_dtype(torch.float64)
OBSERVATION, ACTIONS, LATENT, HIDDEN, WINDOW = 5, 3, 2, 8, 4
CLIP, VALUE = 0.2, 2.0
LENGTHS = (6, 3, 1)


def normal(*shape):
    """Normal numbers that single precision can hold."""
    return torch.randn(*shape).float().double()


class Net(torch.nn.Module):
    def __init__(self, n_out):
        super().__init__()
        self.lstm = torch.nn.LSTM(OBSERVATION + ACTIONS, HIDDEN, batch_first=True)
        self.hidden = torch.nn.ModuleList(torch.nn.Linear(HIDDEN, HIDDEN) for _ in range(2))
        self.head = torch.nn.ModuleList([torch.nn.Linear(HIDDEN + LATENT, HIDDEN), torch.nn.Linear(HIDDEN, n_out)])
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(parameter.float().double())

    def forward(self, window, latent):
        x = self.lstm(window[None])[0][0, -1]
        for layer in self.hidden:
            x = relu(layer(x))
        return self.head[1](relu(self.head[0](torch.cat([x, latent]))))


def our_name(net, name):
    for theirs, ours in (("weight_ih_l0", "input.weight"), ("weight_hh_l0", "hidden.weight"), ("bias_ih_l0", "input.bias"), ("bias_hh_l0", "hidden.bias")):
        name = name.replace(theirs, ours)
    return f"{net}.{name}"


def make_encounter(n):
    return {
        "lengths": [n],
        "observations": normal(n, OBSERVATION),
        "terminals": normal(1, OBSERVATION),
        "actions": torch.randint(0, ACTIONS, (n,)),
        "old_log_probabilities": (-0.4 - torch.rand(n)).float().double(),
        "old_values": normal(n),
        "targets": normal(n),
        "advantages": normal(n),
        # The latent of every decision.
        "kept": normal(n, LATENT),
    }


def window_of(encounter, decision):
    rows = []
    for step in range(decision - WINDOW + 1, decision + 1):
        observation = encounter["observations"][step] if step >= 0 else torch.zeros(OBSERVATION)
        action = one_hot(encounter["actions"][step - 1], ACTIONS) if step > 0 else torch.zeros(ACTIONS)
        rows.append(torch.cat([observation, action]))
    return torch.stack(rows)


def terms_of(actor, critic, encounter, decision, advantages):
    window, latent = window_of(encounter, decision), encounter["kept"][decision]
    logs, value = log_softmax(actor(window, latent), -1), critic(window, latent)[0]
    target = encounter["targets"][decision]
    advantage = encounter["advantages"][decision] if advantages == "raw" else (target - value).detach()
    ratio = torch.exp(logs[encounter["actions"][decision]] - encounter["old_log_probabilities"][decision])
    return {
        "policy_loss": -torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage),
        "entropy": -(logs.exp() * logs).sum(),
        "value_loss": 0.5 * (value - target) ** 2,
    }


def plain(value):
    value = value.detach()
    return [float(f"{x:.9g}") for x in (value.T if value.dim() == 2 else value).flatten().tolist()]


def rows(value):
    return [float(f"{x:.9g}") for x in value.detach().flatten().tolist()]


def main():
    nets = {"actor": Net(ACTIONS), "critic": Net(1)}
    parameters = {our_name(net, name): value for net, module in nets.items() for name, value in module.named_parameters()}
    encounters = [make_encounter(n) for n in LENGTHS]
    cases = []
    for advantages in ("raw", "current"):
        for parameter in parameters.values():
            parameter.grad = None
        found = [
            terms_of(nets["actor"], nets["critic"], encounter, decision, advantages)
            for encounter in encounters
            for decision in range(encounter["lengths"][0])
        ]
        terms = {name: torch.stack([one[name] for one in found]).mean() for name in found[0]}
        (terms["policy_loss"] + VALUE * terms["value_loss"]).backward()
        cases.append(
            {
                "advantages": advantages,
                "terms": {name: float(term.detach()) for name, term in terms.items()},
                "gradients": {name: plain(parameter.grad) for name, parameter in parameters.items()},
            }
        )
    document = {
        "torch": torch.__version__,
        "observation_size": OBSERVATION,
        "latent_size": LATENT,
        "hidden_width": HIDDEN,
        "window": WINDOW,
        "clip": CLIP,
        "entropy_weight": 0.0,
        "value_weight": VALUE,
        "auxiliary_weight": 0.0,
        "parameters": {name: plain(parameter) for name, parameter in parameters.items()},
        "encounters": [
            {name: (rows(field) if torch.is_tensor(field) else field) for name, field in encounter.items()}
            for encounter in encounters
        ],
        "cases": cases,
    }
    print(json.dumps(document))


main()
