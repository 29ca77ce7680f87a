"""Data sets of the learning-curve and mean-field literature, shipped with the package."""

from cavity.datasets._load import (
    DatasetInfo,
    list_datasets,
    load_abalone,
    load_boston,
    load_crabs,
    load_pima,
    load_sonar,
)

__all__ = [
    "DatasetInfo",
    "list_datasets",
    "load_abalone",
    "load_boston",
    "load_crabs",
    "load_pima",
    "load_sonar",
]
