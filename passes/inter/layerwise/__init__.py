"""What cut-layers is made of: which rows are stored, and the functions over chunks of rows."""
