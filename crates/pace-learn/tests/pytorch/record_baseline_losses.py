"""Records the whole losses of the baselines and their gradients as PyTorch computes them, for small networks on random encounters.

Run: pip install torch; python record_baseline_losses.py > baseline_losses.json

Everything is written straight from the definitions, decision by decision: nothing is packed, shared or summed in advance.
"""

import json

import torch
from torch.nn.functional import cross_entropy, log_softmax, relu

torch.manual_seed(12)
torch.set_default_dtype(torch.float64)
OBSERVATION, ACTIONS, PEERS, WIDTH, HIDDEN, CHUNK = 5, 3, 2, 6, 8, 4
CLIP, ENTROPY, VALUE, AUXILIARY = 0.2, 0.03, 0.5, 0.7
NONE = 255
LENGTHS = ([2, 1, 3], [1, 4], [3])

HEADS = {"actor": (HIDDEN, ACTIONS), "critic": (HIDDEN, 1)}
TOWERS = {
    f"{name}.{index}": shape
    for name, n_out in (("actor", ACTIONS), ("critic", 1))
    for index, shape in enumerate([(OBSERVATION + WIDTH, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, n_out)])
}
GRU = {"gru.input": (HIDDEN, 3 * HIDDEN), "gru.hidden": (HIDDEN, 3 * HIDDEN)}
SHAPES = {
    "lili": {
        "encoder.f.0": (OBSERVATION + ACTIONS, WIDTH),
        "encoder.f.1": (WIDTH, WIDTH),
        "encoder.g.0": (WIDTH, WIDTH),
        "encoder.g.1": (WIDTH, WIDTH),
        "predictor.0": (OBSERVATION + ACTIONS + WIDTH, HIDDEN),
        "predictor.1": (HIDDEN, HIDDEN),
        "predictor.reward": (HIDDEN, 1),
        "predictor.observation": (HIDDEN, OBSERVATION),
        **TOWERS,
    },
    "generalist": {"trunk.0": (OBSERVATION, HIDDEN), "trunk.1": (HIDDEN, HIDDEN), **GRU, **HEADS},
    "liam": {
        "trunk.0": (OBSERVATION + ACTIONS, HIDDEN),
        "trunk.1": (HIDDEN, HIDDEN),
        **GRU,
        **HEADS,
        "peers.observations": (HIDDEN, PEERS * OBSERVATION),
        "peers.actions": (HIDDEN, PEERS * ACTIONS),
    },
}


def normal(*shape):
    """Normal numbers that single precision can hold."""
    return torch.randn(*shape).float().double()


def make_parameters(shapes):
    parameters = {}
    for name, (n_in, n_out) in shapes.items():
        parameters[f"{name}.weight"] = (normal(n_in, n_out) / n_in**0.5).float().double().requires_grad_()
        parameters[f"{name}.bias"] = (0.1 * normal(n_out)).float().double().requires_grad_()
    return parameters


def make_encounters():
    encounters = []
    for lengths in LENGTHS:
        n = sum(lengths)
        encounters.append(
            {
                "lengths": lengths,
                "observations": normal(n, OBSERVATION),
                "terminals": normal(len(lengths), OBSERVATION),
                "actions": torch.randint(0, ACTIONS, (n,)),
                # Some peers do not act.
                "peer_actions": torch.tensor([[NONE if (k + p) % 4 == 3 else (k + p) % ACTIONS for p in range(PEERS)] for k in range(n)]),
                "peer_observations": normal(n, PEERS * OBSERVATION),
                "task_rewards": normal(n),
                "old_log_probabilities": (-0.4 - torch.rand(n)).float().double(),
                "old_values": normal(n),
                "targets": normal(n),
                "advantages": normal(n),
                # The hidden states that the chunks begin from.
                "kept": 0.5 * normal(-(-n // CHUNK), HIDDEN),
            }
        )
    return encounters


def linear(parameters, name, rows):
    return rows @ parameters[f"{name}.weight"] + parameters[f"{name}.bias"]


def one_hot(action):
    row = torch.zeros(ACTIONS)
    if action != NONE:
        row[action] = 1.0
    return row


def steps(encounter):
    """Decision, episode, place in the episode, and whether it is the last there."""
    decision = 0
    for episode, length in enumerate(encounter["lengths"]):
        for place in range(length):
            yield decision, episode, place, place == length - 1
            decision += 1


def ppo_terms(encounter, decision, logits, value):
    logs = log_softmax(logits, -1)
    ratio = torch.exp(logs[encounter["actions"][decision]] - encounter["old_log_probabilities"][decision])
    advantage = encounter["advantages"][decision]
    old, target = encounter["old_values"][decision], encounter["targets"][decision]
    near = old + (value - old).clamp(-CLIP, CLIP)
    return {
        "policy_loss": -torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage),
        "entropy": -(logs.exp() * logs).sum(),
        "value_loss": 0.5 * torch.max((value - target) ** 2, (near - target) ** 2),
    }


def mlp(parameters, name, row):
    return relu(linear(parameters, f"{name}.1", relu(linear(parameters, f"{name}.0", row))))


def lili_terms(parameters, encounter, empty_context):
    entries = [[] for _ in encounter["lengths"]]
    for decision, episode, _, is_last in steps(encounter):
        action = one_hot(int(encounter["actions"][decision]))
        entries[episode].append(torch.cat([encounter["observations"][decision], action]))
        if is_last:
            entries[episode].append(torch.cat([encounter["terminals"][episode], one_hot(NONE)]))
    for decision, episode, _, is_last in steps(encounter):
        if episode == 0 and empty_context == "zero":
            z = torch.zeros(WIDTH)
        else:
            features = [mlp(parameters, "encoder.f", entry) for entry in entries[episode - 1]] if episode else []
            pooled = torch.stack(features).mean(0) if features else torch.zeros(WIDTH)
            z = mlp(parameters, "encoder.g", pooled)
        observation = encounter["observations"][decision]
        row = torch.cat([observation, z])
        logits = linear(parameters, "actor.2", mlp(parameters, "actor", row))
        value = linear(parameters, "critic.2", mlp(parameters, "critic", row))[0]
        terms = ppo_terms(encounter, decision, logits, value)
        row = torch.cat([observation, one_hot(int(encounter["actions"][decision])), z])
        hidden = mlp(parameters, "predictor", row)
        following = encounter["terminals"][episode] if is_last else encounter["observations"][decision + 1]
        terms["reward_loss"] = (linear(parameters, "predictor.reward", hidden)[0] - encounter["task_rewards"][decision]) ** 2
        terms["observation_loss"] = ((linear(parameters, "predictor.observation", hidden) - following) ** 2).mean()
        yield terms


def gru(parameters, row, hidden):
    given = linear(parameters, "gru.input", row).split(HIDDEN)
    carried = linear(parameters, "gru.hidden", hidden).split(HIDDEN)
    reset, update = torch.sigmoid(given[0] + carried[0]), torch.sigmoid(given[1] + carried[1])
    new = torch.tanh(given[2] + reset * carried[2])
    return (1 - update) * new + update * hidden


def recurrent_terms(parameters, encounter, models_peers, span, sees_terminal):
    def step(observation, last_action, hidden):
        parts = [observation, one_hot(last_action)] if models_peers else [observation]
        return gru(parameters, mlp(parameters, "trunk", torch.cat(parts)), hidden)

    hidden = None
    for decision, episode, place, is_last in steps(encounter):
        if decision % CHUNK == 0:
            hidden = encounter["kept"][decision // CHUNK]
        if place == 0 and span == "episode":
            hidden = torch.zeros(HIDDEN)
        last_action = NONE if place == 0 else int(encounter["actions"][decision - 1])
        hidden = step(encounter["observations"][decision], last_action, hidden)
        logits, value = linear(parameters, "actor", hidden), linear(parameters, "critic", hidden)[0]
        terms = ppo_terms(encounter, decision, logits, value)
        if models_peers:
            seen = linear(parameters, "peers.observations", hidden).split(OBSERVATION)
            done = linear(parameters, "peers.actions", hidden).split(ACTIONS)
            terms["observation_loss"], terms["action_loss"] = torch.tensor(0.0), torch.tensor(0.0)
            for peer, action in enumerate(encounter["peer_actions"][decision]):
                if action != NONE:
                    target = encounter["peer_observations"][decision].split(OBSERVATION)[peer]
                    terms["observation_loss"] = terms["observation_loss"] + ((seen[peer] - target) ** 2).mean() / PEERS
                    terms["action_loss"] = terms["action_loss"] + cross_entropy(done[peer][None], action[None]) / PEERS
        yield terms
        if is_last and sees_terminal:
            hidden = step(encounter["terminals"][episode], int(encounter["actions"][decision]), hidden)


def plain(value):
    return [float(f"{x:.9g}") for x in value.detach().flatten().tolist()]


def main():
    encounters = make_encounters()
    all_parameters = {name: make_parameters(shapes) for name, shapes in SHAPES.items()}
    cases = [{"net": "lili", "empty_context": empty} for empty in ("zero", "encoded")]
    cases += [{"net": "generalist", "span": "encounter", "sees_terminal": sees} for sees in (False, True)]
    cases += [{"net": "liam", "span": "encounter", "sees_terminal": sees} for sees in (False, True)]
    cases += [{"net": "liam", "span": "episode", "sees_terminal": False}]
    for case in cases:
        parameters = all_parameters[case["net"]]
        for parameter in parameters.values():
            parameter.grad = None
        rows = []
        for encounter in encounters:
            if case["net"] == "lili":
                rows += lili_terms(parameters, encounter, case["empty_context"])
            else:
                rows += recurrent_terms(parameters, encounter, case["net"] == "liam", case["span"], case["sees_terminal"])
        terms = {name: torch.stack([row[name] for row in rows]).mean() for name in rows[0]}
        auxiliary = sum(term for name, term in terms.items() if name not in ("policy_loss", "value_loss", "entropy"))
        total = terms["policy_loss"] + VALUE * terms["value_loss"] - ENTROPY * terms["entropy"] + AUXILIARY * auxiliary
        total.backward()
        case["terms"] = {name: float(term.detach()) for name, term in terms.items()}
        case["gradients"] = {name: plain(parameter.grad) for name, parameter in parameters.items()}
    document = {
        "torch": torch.__version__,
        "observation_size": OBSERVATION,
        "encoder_width": WIDTH,
        "hidden_width": HIDDEN,
        "chunk_steps": CHUNK,
        "clip": CLIP,
        "entropy_weight": ENTROPY,
        "value_weight": VALUE,
        "auxiliary_weight": AUXILIARY,
        "parameters": {
            net: {name: plain(parameter) for name, parameter in parameters.items()} for net, parameters in all_parameters.items()
        },
        "encounters": [
            {name: (plain(field) if torch.is_tensor(field) else field) for name, field in encounter.items()}
            for encounter in encounters
        ],
        "cases": cases,
    }
    print(json.dumps(document))


main()
