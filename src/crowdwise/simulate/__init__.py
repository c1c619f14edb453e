"""Crowds with known truth."""

from crowdwise.simulate.crowds import (
    Crowd,
    confused_crowd,
    label_by_crowd,
    one_coin_confusion,
    simulate_crowd,
)

__all__ = ["Crowd", "confused_crowd", "label_by_crowd", "one_coin_confusion", "simulate_crowd"]
