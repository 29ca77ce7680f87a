"""Large tables: accuracy beside peers, and what an evaluation, a fit and a curve cost."""
