"""`gnnc.save_checkpoint` and `gnnc.load_checkpoint`, on one rank and on several."""
