"""Random features with the traits that matter: a large common mean, a steep spectrum, few toolken positions."""

import torch

from toolken.training.features import Features


def synthetic_features(
    positions: int = 400, width: int = 12, tools: int = 3, *, seed: int = 0, scale: float = 30.0, share: float = 0.15
) -> Features:
    draw = torch.Generator().manual_seed(seed)
    fixed = torch.Generator().manual_seed(99)
    spectrum = torch.arange(1, width + 1).float() ** -0.6
    mean = torch.randn(width, generator=fixed)
    centres = torch.randn(tools + 1, width, generator=fixed) * spectrum
    toolken = torch.where(
        torch.rand(positions, generator=draw) < share, torch.randint(0, tools, (positions,), generator=draw), -1
    )
    toolken[: 2 * tools] = torch.arange(2 * tools) % tools
    hidden = (
        mean + centres[toolken] * (toolken >= 0)[:, None] + torch.randn(positions, width, generator=draw) * spectrum
    )
    lse = torch.randn(positions, generator=draw) + 12
    largest = lse - torch.rand(positions, generator=draw)
    target = largest - torch.rand(positions, generator=draw) * 2
    example = torch.arange(positions) // 8
    return Features(hidden * (scale / hidden.norm(dim=1).mean()), lse, largest, target, toolken, example)
