"""Records the last hidden states and the gradients of PyTorch's LSTM on windows of equal length that share inputs.

Run: pip install torch; python record_lstm.py > lstm.json

Input 0 is the zero input that stands before the first step. Weights are stored input by input (PyTorch's transposed).
"""

import json

import torch

torch.manual_seed(6)
torch.set_default_dtype(torch.float64)
N_IN, WIDTH, N_INPUTS, LENGTH = 7, 20, 9, 5


def rounded(*shape):
    """Normal numbers that single precision can hold."""
    return torch.randn(*shape).float().double()


def plain(value):
    return [float(f"{x:.9g}") for x in value.detach().flatten().tolist()]


def main():
    lstm = torch.nn.LSTM(N_IN, WIDTH, batch_first=True)
    with torch.no_grad():
        for parameter in lstm.parameters():
            parameter.copy_(rounded(*parameter.shape) * 0.5)
    inputs = rounded(N_INPUTS, N_IN)
    inputs[0] = 0.0
    # A window ends at every input but the zero one.
    windows = [[max(0, last - step) for step in reversed(range(LENGTH))] for last in range(1, N_INPUTS)]
    slopes = rounded(len(windows), WIDTH)
    out = lstm(inputs[torch.tensor(windows)])[0][:, -1]
    (out * slopes).sum().backward()
    names = {"input.weight": "weight_ih_l0", "hidden.weight": "weight_hh_l0", "input.bias": "bias_ih_l0", "hidden.bias": "bias_hh_l0"}
    parameters = {ours: getattr(lstm, theirs) for ours, theirs in names.items()}
    document = {
        "torch": torch.__version__,
        "n_in": N_IN,
        "width": WIDTH,
        "n_windows": len(windows),
        "indices": [window[step] for step in range(LENGTH) for window in windows],
        "inputs": plain(inputs),
        "d_outputs": plain(slopes),
        "outputs": plain(out),
        "parameters": {f"lstm.{name}": plain(value.T) for name, value in parameters.items()},
        "gradients": {f"lstm.{name}": plain(value.grad.T) for name, value in parameters.items()},
    }
    print(json.dumps(document))


main()
