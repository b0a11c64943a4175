"""A compiled step of training as the C text of a program that trains without Python."""
