"""Plain C99, one loop nest a step: what other targets are compared with."""
