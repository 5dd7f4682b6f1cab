"""Records the whole PACE loss and its gradients as PyTorch computes them, for a small network on random encounters.

Run: pip install torch numpy; python record_pace_loss.py > pace_loss.json

Contexts are re-encoded for every decision straight from the definition (a mean over episodes of a mean over entries), so the
recording shares nothing with the prefix sums it is compared to.
"""

import json

import torch
from torch.nn.functional import cross_entropy, log_softmax, relu

torch.manual_seed(11)
OBSERVATION, ACTIONS, CLASSES, WIDTH, HIDDEN = 5, 3, [4, 2], 8, 12
CLIP, ENTROPY, VALUE, AUXILIARY = 0.2, 0.03, 0.5, 0.7
NONE = 255

SHAPES = {
    "encoder.f.0": (OBSERVATION + ACTIONS, WIDTH),
    "encoder.f.1": (WIDTH, WIDTH),
    "encoder.g.0": (WIDTH, WIDTH),
    "encoder.g.1": (WIDTH, WIDTH),
    "identifier": (WIDTH, sum(CLASSES)),
    "actor.0": (OBSERVATION + WIDTH, HIDDEN),
    "actor.1": (HIDDEN, HIDDEN),
    "actor.2": (HIDDEN, ACTIONS),
    "critic.0": (OBSERVATION + WIDTH, HIDDEN),
    "critic.1": (HIDDEN, HIDDEN),
    "critic.2": (HIDDEN, 1),
}


def make_parameters():
    parameters = {}
    for name, (n_in, n_out) in SHAPES.items():
        parameters[f"{name}.weight"] = (torch.randn(n_in, n_out) / n_in**0.5).requires_grad_()
        parameters[f"{name}.bias"] = (0.1 * torch.randn(n_out)).requires_grad_()
    return parameters


def make_encounters():
    encounters = []
    for episodes in ([2, 1, 3], [1, 4], [3]):
        n = sum(episodes)
        encounters.append(
            {
                "lengths": episodes,
                "observations": torch.randn(n, OBSERVATION),
                "terminals": torch.randn(len(episodes), OBSERVATION),
                "actions": torch.randint(0, ACTIONS, (n,)),
                # Some entries carry no action, as where a peer did not act.
                "context_actions": torch.tensor([NONE if k % 5 == 4 else k % ACTIONS for k in range(n)]),
                "old_log_probabilities": -0.4 - torch.rand(n),
                "old_values": torch.randn(n),
                "targets": torch.randn(n),
                "advantages": torch.randn(n),
                "classes": [int(torch.randint(0, c, (1,))) for c in CLASSES],
            }
        )
    return encounters


def linear(parameters, name, rows):
    return rows @ parameters[f"{name}.weight"] + parameters[f"{name}.bias"]


def encode_entry(parameters, observation, action):
    one_hot = torch.zeros(ACTIONS)
    if action != NONE:
        one_hot[action] = 1.0
    return relu(linear(parameters, "encoder.f.1", relu(linear(parameters, "encoder.f.0", torch.cat([observation, one_hot])))))


def latent(parameters, encounter, episode, step, empty_context, empty_episode):
    """The latent before decision `step` of `episode`."""
    means, first = [], 0
    for index, length in enumerate(encounter["lengths"][: episode + 1]):
        last = length if index < episode else step
        entries = [
            encode_entry(parameters, encounter["observations"][first + k], int(encounter["context_actions"][first + k]))
            for k in range(last)
        ]
        if index < episode:
            entries.append(encode_entry(parameters, encounter["terminals"][index], NONE))
        if entries:
            means.append(torch.stack(entries).mean(0))
        elif empty_episode == "counts-as-zero":
            means.append(torch.zeros(WIDTH))
        first += length
    if episode == 0 and step == 0 and empty_context == "zero":
        return torch.zeros(WIDTH)
    pooled = torch.stack(means).mean(0) if means else torch.zeros(WIDTH)
    return relu(linear(parameters, "encoder.g.1", relu(linear(parameters, "encoder.g.0", pooled))))


def tower(parameters, name, rows):
    return linear(parameters, f"{name}.2", relu(linear(parameters, f"{name}.1", relu(linear(parameters, f"{name}.0", rows)))))


def loss_terms(parameters, encounters, empty_context, empty_episode):
    policy, value_loss, entropy, auxiliary = [], [], [], []
    for encounter in encounters:
        decision = 0
        for episode, length in enumerate(encounter["lengths"]):
            for step in range(length):
                z = latent(parameters, encounter, episode, step, empty_context, empty_episode)
                row = torch.cat([encounter["observations"][decision], z])
                logs = log_softmax(tower(parameters, "actor", row), -1)
                ratio = torch.exp(logs[encounter["actions"][decision]] - encounter["old_log_probabilities"][decision])
                advantage = encounter["advantages"][decision]
                policy.append(-torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage))
                entropy.append(-(logs.exp() * logs).sum())
                value, old = tower(parameters, "critic", row)[0], encounter["old_values"][decision]
                target = encounter["targets"][decision]
                near = old + (value - old).clamp(-CLIP, CLIP)
                value_loss.append(0.5 * torch.max((value - target) ** 2, (near - target) ** 2))
                logits = linear(parameters, "identifier", z).split(CLASSES)
                heads = [cross_entropy(head[None], torch.tensor([c])) for head, c in zip(logits, encounter["classes"])]
                auxiliary.append(torch.stack(heads).mean())
                decision += 1
    return {
        "policy_loss": torch.stack(policy).mean(),
        "value_loss": torch.stack(value_loss).mean(),
        "entropy": torch.stack(entropy).mean(),
        "auxiliary_loss": torch.stack(auxiliary).mean(),
    }


def plain(value):
    return [float(f"{x:.9g}") for x in value.detach().flatten().tolist()]


def main():
    parameters, encounters = make_parameters(), make_encounters()
    cases = []
    for empty_context in ("zero", "encoded"):
        for empty_episode in ("left-out", "counts-as-zero"):
            for parameter in parameters.values():
                parameter.grad = None
            terms = loss_terms(parameters, encounters, empty_context, empty_episode)
            total = terms["policy_loss"] + VALUE * terms["value_loss"] - ENTROPY * terms["entropy"] + AUXILIARY * terms["auxiliary_loss"]
            total.backward()
            cases.append(
                {
                    "empty_context": empty_context,
                    "empty_episode": empty_episode,
                    "terms": {name: float(term.detach()) for name, term in terms.items()},
                    "gradients": {name: plain(parameter.grad) for name, parameter in parameters.items()},
                }
            )
    document = {
        "torch": torch.__version__,
        "observation_size": OBSERVATION,
        "n_actions": ACTIONS,
        "n_classes": CLASSES,
        "encoder_width": WIDTH,
        "hidden_width": HIDDEN,
        "clip": CLIP,
        "entropy_weight": ENTROPY,
        "value_weight": VALUE,
        "auxiliary_weight": AUXILIARY,
        "parameters": {name: plain(parameter) for name, parameter in parameters.items()},
        "encounters": [
            {name: (plain(field) if torch.is_tensor(field) else field) for name, field in encounter.items()}
            for encounter in encounters
        ],
        "cases": cases,
    }
    print(json.dumps(document))


main()
