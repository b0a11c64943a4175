"""What the importer's third stage computes with: symbolic values over sets without names."""
