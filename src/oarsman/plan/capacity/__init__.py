"""Who may start, and where: whole gangs only. Pure arithmetic over what there is and who holds it.

There is one arithmetic (`placement`, `queue`) for one machine, the SSH hosts of an inventory and the nodes of a
cluster. They differ in what they are asked for and in what people are told: `one_machine`, `hosts` and `nodes`.
"""
