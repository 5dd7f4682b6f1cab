"""Records losses and their gradients as PyTorch computes them: KL divergences of normal distributions, masked errors, cross-entropies.

Run: pip install torch; python record_losses.py > losses.json

A distribution is a row of means, followed by the logarithms of the variances.
"""

import json

import torch
from torch.distributions import Normal, kl_divergence
from torch.nn.functional import cross_entropy, mse_loss

torch.manual_seed(3)
torch.set_default_dtype(torch.float64)
ROWS, LATENT, WIDTH, GROUPS, NONE, WEIGHT = 5, 3, 19, [2, 4, 3], 255, 0.3
CLASSES = [[1, 3, 0], [0, NONE, 2], [NONE, NONE, NONE], [1, 0, 1], [0, 2, NONE]]
MASK = [1.0, 0.0, 1.0, 1.0, 0.0]


def rounded(*shape):
    """Normal numbers that single precision can hold."""
    return torch.randn(*shape).float().double()


def plain(value):
    return [float(f"{x:.9g}") for x in value.detach().flatten().tolist()]


def normal(rows):
    means, logs = rows.chunk(2, -1)
    return Normal(means, (0.5 * logs).exp())


def gradient(loss, leaf):
    return plain(torch.autograd.grad(WEIGHT * loss, leaf)[0])


def main():
    distributions, fixed = rounded(ROWS, 2 * LATENT).requires_grad_(), rounded(ROWS, 2 * LATENT)
    noise, slopes = rounded(ROWS, LATENT), rounded(ROWS, LATENT)
    means, logs = distributions.chunk(2, -1)
    samples = means + (0.5 * logs).exp() * noise
    standard = Normal(torch.zeros(ROWS, LATENT), torch.ones(ROWS, LATENT))
    from_standard = kl_divergence(normal(distributions), standard).sum(-1)
    from_fixed = kl_divergence(normal(distributions), normal(fixed)).sum(-1)

    predictions, targets = rounded(ROWS, WIDTH).requires_grad_(), rounded(ROWS, WIDTH)
    errors = mse_loss(predictions, targets, reduction="none").mean(-1) * torch.tensor(MASK)

    logits = rounded(ROWS, sum(GROUPS)).requires_grad_()
    entropies = []
    for row, classes in zip(logits, CLASSES):
        heads = zip(row.split(GROUPS), classes)
        terms = [cross_entropy(head, torch.tensor(c)) for head, c in heads if c != NONE]
        entropies.append(sum(terms) / len(GROUPS) if terms else 0.0 * row.sum())
    entropies = torch.stack(entropies)

    document = {
        "torch": torch.__version__,
        "weight": WEIGHT,
        "gaussian": {
            "latent_size": LATENT,
            "distributions": plain(distributions),
            "fixed": plain(fixed),
            "noise": plain(noise),
            "samples": plain(samples),
            "d_samples": plain(slopes),
            "d_distributions_of_samples": plain(torch.autograd.grad((samples * slopes).sum(), distributions)[0]),
            "from_standard": plain(from_standard),
            "d_from_standard": gradient(from_standard.sum(), distributions),
            "from_fixed": plain(from_fixed),
            "d_from_fixed": gradient(from_fixed.sum(), distributions),
        },
        "squared_error": {
            "width": WIDTH,
            "mask": MASK,
            "predictions": plain(predictions),
            "targets": plain(targets),
            "sum": float(errors.sum().detach()),
            "d_predictions": gradient(errors.sum(), predictions),
        },
        "cross_entropy": {
            "groups": GROUPS,
            "classes": CLASSES,
            "logits": plain(logits),
            "losses": plain(entropies),
            "d_logits": gradient(entropies.sum(), logits),
        },
    }
    print(json.dumps(document))


main()
