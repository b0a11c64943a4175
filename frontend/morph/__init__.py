"""MorphGL: who prepares which mini-batch, the CPU or the accelerator, fitted to the hardware."""
