"""The kernel of MGG (Wang et al., OSDI 2023), in which reads of other devices' rows go on beside
sums over local ones: what a launch takes, how long it would take, and a search for the best."""
