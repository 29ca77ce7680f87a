"""Learning curves by theory against refits, forecasts, suspects and speed."""
