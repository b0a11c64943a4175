"""The importer's fourth stage: values become `inter` ops over named sets."""
