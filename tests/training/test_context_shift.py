"""The context shift is counted in training deviations."""

import pytest
import torch

from toolken.errors import UserError
from toolken.training.context_shift import context_shift


def test_a_move_of_half_a_deviation_in_every_dimension_is_a_half() -> None:
    training = torch.randn(4000, 6, generator=torch.Generator().manual_seed(0)) * torch.arange(1, 7)
    training = torch.cat([training, torch.ones(4000, 1)], dim=1)  # a dimension that never varies
    assert context_shift(training, training + 0.5 * training.std(dim=0)) == pytest.approx(0.5, rel=1e-5)
    assert context_shift(training, training) == 0
    with pytest.raises(UserError, match="1 training"):
        context_shift(training[:1], training)
