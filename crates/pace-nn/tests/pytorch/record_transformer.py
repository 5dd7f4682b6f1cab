"""Records outputs and gradients of PyTorch's Transformer encoder layer on padded sequences, with and without dropout.

Run: pip install torch; python record_transformer.py > transformer.json

The layer and the padding mask are PyTorch's. Only the random choice of dropped values is replaced by the engine's function of a
key. Rows are recorded without the padding, weights input by input (PyTorch's transposed).
"""

import json

import torch
from torch.nn import functional

torch.manual_seed(7)
torch.set_default_dtype(torch.float64)
WIDTH, HEADS, HIDDEN, LENGTHS, POSITIONS = 12, 3, 10, [5, 1, 4, 7], 8
RATE, KEY = 0.4, 0x0123_4567_89AB_CDEF
LONGEST, IS_ROW = max(LENGTHS), torch.zeros(len(LENGTHS), max(LENGTHS), dtype=torch.bool)
for sequence, length in enumerate(LENGTHS):
    IS_ROW[sequence, :length] = True


def rounded(*shape):
    """Normal numbers that single precision can hold."""
    return torch.randn(*shape).float().double()


def plain(value):
    return [float(f"{x:.9g}") for x in value.detach().flatten().tolist()]


def as_ours(name, value):
    return value if name == "positions.table" else value.T


def set_rate(layer, rate):
    layer.self_attn.dropout = rate
    for module in (layer.dropout, layer.dropout1, layer.dropout2):
        module.p = rate


def key_of(key, index):
    m = (1 << 64) - 1
    x = (key + (index + 1) * 0x9E37_79B9_7F4A_7C15) & m
    x = ((x ^ (x >> 30)) * 0xBF58_476D_1CE4_E5B9) & m
    x = ((x ^ (x >> 27)) * 0x94D0_49BB_1331_11EB) & m
    return x ^ (x >> 31)


def factors(key, n):
    """Returns the engine's dropout factors of the first n indices."""
    m, mask = (1 << 32) - 1, []
    for index in range(n):
        x = (index * 0x9E37_79B9 + (key & m)) & m
        x = (((x ^ (x >> 16)) * 0x7FEB_352D) & m) ^ (key >> 32)
        x = ((x ^ (x >> 15)) * 0x846C_A68B) & m
        mask.append(0.0 if (x ^ (x >> 16)) < int(RATE * 2**32) else 1 / (1 - RATE))
    return torch.tensor(mask)


def replace_dropout():
    uses = iter([1, 2, 3])

    def dropout(rows, p, training, inplace):
        assert training and p == RATE
        mask = torch.ones_like(rows)
        mask[IS_ROW] = factors(key_of(KEY, next(uses)), sum(LENGTHS) * rows.shape[-1]).reshape(-1, rows.shape[-1])
        return rows * mask

    def attention(query, key, value, attn_mask, dropout_p, is_causal):
        assert dropout_p == RATE and not is_causal
        weights = torch.softmax(query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5 + attn_mask, -1)
        mask, start = torch.ones_like(weights), 0
        # The engine's rows of weights are padded to a multiple of sixteen; the first n numbers are used.
        strides = [-(-n // 16) * 16 for n in LENGTHS]
        drawn = factors(key_of(KEY, 0), HEADS * sum(n * stride for n, stride in zip(LENGTHS, strides)))
        for sequence, (n, stride) in enumerate(zip(LENGTHS, strides)):
            end = start + HEADS * n * stride
            mask[sequence, :, :n, :n] = drawn[start:end].reshape(HEADS, n, stride)[:, :, :n]
            start = end
        return (weights * mask) @ value

    functional.dropout, functional.scaled_dot_product_attention = dropout, attention


def main():
    layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, dropout=RATE, activation="relu", batch_first=True)
    table = torch.nn.Embedding(POSITIONS, WIDTH)
    modules = {
        "layer.attention.projection.weight": layer.self_attn.in_proj_weight,
        "layer.attention.projection.bias": layer.self_attn.in_proj_bias,
        "layer.attention.output.weight": layer.self_attn.out_proj.weight,
        "layer.attention.output.bias": layer.self_attn.out_proj.bias,
        "layer.attention_norm.gain": layer.norm1.weight,
        "layer.attention_norm.bias": layer.norm1.bias,
        "layer.forward.0.weight": layer.linear1.weight,
        "layer.forward.0.bias": layer.linear1.bias,
        "layer.forward.1.weight": layer.linear2.weight,
        "layer.forward.1.bias": layer.linear2.bias,
        "layer.forward_norm.gain": layer.norm2.weight,
        "layer.forward_norm.bias": layer.norm2.bias,
        "positions.table": table.weight,
    }
    with torch.no_grad():
        for parameter in modules.values():
            parameter.copy_(rounded(*parameter.shape) * 0.4)
    inputs, slopes = rounded(len(LENGTHS), LONGEST, WIDTH).requires_grad_(), rounded(len(LENGTHS), LONGEST, WIDTH)
    cases = []
    for is_dropping in (False, True):
        for parameter in [inputs, *modules.values()]:
            parameter.grad = None
        set_rate(layer, RATE if is_dropping else 0.0)
        if is_dropping:
            replace_dropout()
        rows = layer(inputs + table(torch.arange(LONGEST)), src_key_padding_mask=~IS_ROW)
        (rows[IS_ROW] * slopes[IS_ROW]).sum().backward()
        cases.append(
            {
                "is_dropping": is_dropping,
                "outputs": plain(rows[IS_ROW]),
                "d_inputs": plain(inputs.grad[IS_ROW]),
                "gradients": {name: plain(as_ours(name, value.grad)) for name, value in modules.items()},
            }
        )
    document = {
        "torch": torch.__version__,
        "width": WIDTH,
        "n_heads": HEADS,
        "hidden_width": HIDDEN,
        "n_positions": POSITIONS,
        "dropout": RATE,
        "key": KEY,
        "lengths": LENGTHS,
        "inputs": plain(inputs[IS_ROW]),
        "d_outputs": plain(slopes[IS_ROW]),
        "parameters": {name: plain(as_ours(name, value)) for name, value in modules.items()},
        "cases": cases,
    }
    print(json.dumps(document))


main()
