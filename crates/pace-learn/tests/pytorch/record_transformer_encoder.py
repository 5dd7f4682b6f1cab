"""Records latents of PACE's transformer encoder and their gradients as PyTorch computes them, for a small encoder on random encounters.

Run: pip install torch; python record_transformer_encoder.py > transformer_encoder.json

Every decision's context is encoded by itself, straight from the definition. Nothing is dropped. Weights are input by input
(PyTorch's transposed).
"""

import json

import torch
from torch.nn.functional import relu

torch.manual_seed(13)
torch.set_default_dtype(torch.float64)
OBSERVATION, ACTIONS, WIDTH, HEADS = 5, 3, 8, 4
N_STEPS, N_EPISODES = 5, 3
NONE = 255
LENGTHS = ([2, 1, 3], [1, 4], [3])


def normal(*shape):
    """Normal numbers that single precision can hold."""
    return torch.randn(*shape).float().double()


def plain(value):
    return [float(f"{x:.9g}") for x in value.detach().flatten().tolist()]


def named(layer, name):
    return {
        f"{name}.attention.projection.weight": layer.self_attn.in_proj_weight,
        f"{name}.attention.projection.bias": layer.self_attn.in_proj_bias,
        f"{name}.attention.output.weight": layer.self_attn.out_proj.weight,
        f"{name}.attention.output.bias": layer.self_attn.out_proj.bias,
        f"{name}.attention_norm.gain": layer.norm1.weight,
        f"{name}.attention_norm.bias": layer.norm1.bias,
        f"{name}.forward.0.weight": layer.linear1.weight,
        f"{name}.forward.0.bias": layer.linear1.bias,
        f"{name}.forward.1.weight": layer.linear2.weight,
        f"{name}.forward.1.bias": layer.linear2.bias,
        f"{name}.forward_norm.gain": layer.norm2.weight,
        f"{name}.forward_norm.bias": layer.norm2.bias,
    }


def make_encounters():
    encounters = []
    for lengths in LENGTHS:
        n = sum(lengths)
        encounters.append(
            {
                "lengths": lengths,
                "observations": normal(n, OBSERVATION),
                "terminals": normal(len(lengths), OBSERVATION),
                "actions": torch.tensor([NONE if k % 5 == 4 else k % ACTIONS for k in range(n)]),
                "slopes": normal(n, WIDTH),
            }
        )
    return encounters


class Encoder:
    def __init__(self):
        self.entry = torch.nn.Linear(OBSERVATION + ACTIONS, WIDTH)
        self.g = [torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)]
        make = lambda: torch.nn.TransformerEncoderLayer(WIDTH, HEADS, WIDTH, dropout=0.0, activation="relu", batch_first=True)
        self.steps, self.episodes = make(), make()
        self.step_positions = torch.nn.Embedding(N_STEPS, WIDTH)
        self.episode_positions = torch.nn.Embedding(N_EPISODES, WIDTH)
        self.parameters = {
            "encoder.entry.weight": self.entry.weight,
            "encoder.entry.bias": self.entry.bias,
            "encoder.steps.positions.table": self.step_positions.weight,
            **named(self.steps, "encoder.steps"),
            "encoder.episodes.positions.table": self.episode_positions.weight,
            **named(self.episodes, "encoder.episodes"),
            **{f"encoder.g.{k}.{kind}": getattr(self.g[k], kind) for k in (0, 1) for kind in ("weight", "bias")},
        }
        with torch.no_grad():
            for parameter in self.parameters.values():
                parameter.copy_(normal(*parameter.shape) * 0.4)

    def level(self, layer, positions, rows):
        rows = torch.stack(rows) + positions(torch.arange(len(rows)))
        return layer(rows[None])[0].mean(0)

    def entry_of(self, observation, action):
        one_hot = torch.zeros(ACTIONS)
        if action != NONE:
            one_hot[action] = 1.0
        return relu(self.entry(torch.cat([observation, one_hot])))

    def latent(self, encounter, episode, step, empty_context, empty_episode):
        """Before decision `step` of `episode`."""
        if episode == 0 and step == 0 and empty_context == "zero":
            return torch.zeros(WIDTH)
        vectors, first = [], 0
        for index, length in enumerate(encounter["lengths"][: episode + 1]):
            last = length if index < episode else step
            entries = [
                self.entry_of(encounter["observations"][first + k], int(encounter["actions"][first + k])) for k in range(last)
            ]
            if index < episode:
                entries.append(self.entry_of(encounter["terminals"][index], NONE))
            if entries:
                vectors.append(self.level(self.steps, self.step_positions, entries))
            elif empty_episode == "counts-as-zero":
                vectors.append(torch.zeros(WIDTH))
            first += length
        pooled = self.level(self.episodes, self.episode_positions, vectors) if vectors else torch.zeros(WIDTH)
        return relu(self.g[1](relu(self.g[0](pooled))))


def main():
    encoder, encounters = Encoder(), make_encounters()
    # Input by input; positions are a table and stay as they are.
    flip = lambda name, value: value.T if name.endswith(".weight") else value
    cases = []
    for empty_context in ("zero", "encoded"):
        for empty_episode in ("left-out", "counts-as-zero"):
            for parameter in encoder.parameters.values():
                parameter.grad = None
            latents, total = [], 0.0
            for encounter in encounters:
                decision = 0
                for episode, length in enumerate(encounter["lengths"]):
                    for step in range(length):
                        latents.append(encoder.latent(encounter, episode, step, empty_context, empty_episode))
                        total = total + (latents[-1] * encounter["slopes"][decision]).sum()
                        decision += 1
            total.backward()
            cases.append(
                {
                    "empty_context": empty_context,
                    "empty_episode": empty_episode,
                    "latents": plain(torch.stack(latents)),
                    "gradients": {name: plain(flip(name, p.grad)) for name, p in encoder.parameters.items()},
                }
            )
    document = {
        "torch": torch.__version__,
        "observation_size": OBSERVATION,
        "n_steps": N_STEPS,
        "n_episodes": N_EPISODES,
        "encoder_width": WIDTH,
        "parameters": {name: plain(flip(name, parameter)) for name, parameter in encoder.parameters.items()},
        "encounters": [
            {name: (plain(field) if torch.is_tensor(field) else field) for name, field in encounter.items()}
            for encounter in encounters
        ],
        "cases": cases,
    }
    print(json.dumps(document))


main()
