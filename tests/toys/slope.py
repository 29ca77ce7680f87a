"""A kernel outside the package, with a rule: a line through the origin of unknown slope."""

import numpy as np
from sklearn.gaussian_process import kernels as sk

from cavity.arrays import matmul, namespace
from cavity.kernels import Rule, register


class ToySlope(sk.Kernel):
    """k(x, z) = s² x·z."""

    def __init__(self, s=0.7, s_bounds=(1e-5, 1e5)):
        self.s, self.s_bounds = s, s_bounds

    @property
    def hyperparameter_s(self):
        return sk.Hyperparameter("s", "numeric", self.s_bounds)

    def __call__(self, X, Y=None, eval_gradient=False):
        K = self.s**2 * X @ (X if Y is None else Y).T
        return (K, 2.0 * K[:, :, None]) if eval_gradient else K

    def diag(self, X):
        return np.diag(self(X))

    def is_stationary(self):
        return False


@register(ToySlope)
class ToySlopeRule(Rule):
    """What the kernel says, wherever the inputs live."""

    def matrix(self, X, Z=None):
        return self.kernel.s**2 * matmul(X, (X if Z is None else Z).T)

    def diag(self, X):
        return self.kernel.s**2 * namespace(X).sum(X * X, axis=1)

    def vjp(self, X, Z, G, K=None):
        return np.asarray([2.0 * float(namespace(G).sum(G * self.matrix(X, Z)))])
