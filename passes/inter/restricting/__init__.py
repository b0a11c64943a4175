"""What restrict-rows consists of: which rows are needed, the sets of these rows, values on them."""
