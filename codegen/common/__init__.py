"""What every target shares: the artefact, the interface of phases, writers of C."""
