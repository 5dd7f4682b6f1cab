"""Records outputs and gradients of PyTorch's GRU cell on a block of sequences of several lengths, some with a reset state.

Run: pip install torch; python record_gru.py > gru.json

Rows lie step by step, longest sequence first. Weights are stored input by input (PyTorch's transposed).
"""

import json

import torch

torch.manual_seed(5)
torch.set_default_dtype(torch.float64)
N_IN, WIDTH, LENGTHS = 7, 20, [6, 6, 4, 3, 1]


def rounded(*shape):
    """Normal numbers that single precision can hold."""
    return torch.randn(*shape).float().double()


def plain(value):
    return [float(f"{x:.9g}") for x in value.detach().flatten().tolist()]


def main():
    cell = torch.nn.GRUCell(N_IN, WIDTH)
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.copy_(rounded(*parameter.shape) * 0.5)
    batch_sizes = [sum(length > step for length in LENGTHS) for step in range(max(LENGTHS))]
    inputs = [rounded(n, N_IN).requires_grad_() for n in batch_sizes]
    slopes = [rounded(n, WIDTH) for n in batch_sizes]
    state_mask = [torch.ones(n) for n in batch_sizes]
    # The states of two sequences are reset, one of them at its first step.
    state_mask[3][1] = state_mask[0][2] = state_mask[2][2] = 0.0
    initial = rounded(len(LENGTHS), WIDTH)
    hidden, outputs = initial, []
    for rows, mask in zip(inputs, state_mask):
        n = len(mask)
        hidden = cell(rows, hidden[:n] * mask[:, None])
        outputs.append(hidden)
    sum((out * slope).sum() for out, slope in zip(outputs, slopes)).backward()
    names = {"input.weight": "weight_ih", "hidden.weight": "weight_hh", "input.bias": "bias_ih", "hidden.bias": "bias_hh"}
    parameters = {ours: getattr(cell, theirs) for ours, theirs in names.items()}
    document = {
        "torch": torch.__version__,
        "n_in": N_IN,
        "width": WIDTH,
        "batch_sizes": batch_sizes,
        "initial": plain(initial),
        "state_mask": plain(torch.cat(state_mask)),
        "inputs": plain(torch.cat(inputs)),
        "d_outputs": plain(torch.cat(slopes)),
        "outputs": plain(torch.cat(outputs)),
        "d_inputs": plain(torch.cat([rows.grad for rows in inputs])),
        "parameters": {f"gru.{name}": plain(value.T) for name, value in parameters.items()},
        "gradients": {f"gru.{name}": plain(value.grad.T) for name, value in parameters.items()},
    }
    print(json.dumps(document))


main()
