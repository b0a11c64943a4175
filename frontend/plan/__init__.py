"""How long training takes on ranks that nobody has: predictions from sizes and measured constants.

`loads` says what each rank has and sends, `layers` what a layer computes and what crosses, `stages`
puts both together; `cost` sums it up, `simulate` plays it through in virtual time, and `schemes`
compares other ways to spread a layer. `constants` are those of a machine.
"""
