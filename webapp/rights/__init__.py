"""Who may do what, how much of it, and when it is their turn.

`access` alone decides who sees and changes which objects; whoever asks for an object asks there first. `permissions`
has a rule for each address of the site, `guards` find out who sends an HTTP request, and `quotas`, `limits` and `fair`
bound what one user may take. Begin with `access`; docs/teams.md explains its rules.
"""
