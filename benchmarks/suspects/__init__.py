"""Labels turned wrong on purpose: how many and which are found, here and with cleanlab."""
