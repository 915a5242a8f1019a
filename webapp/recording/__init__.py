"""What the engines report, saved in the database: answers as events and incidents, acknowledgements, costs.

The worker runs all of this; no request does. `recording` follows the answers, `settling` what the engines acknowledge,
and `strain` what queries cost. Begin with `recording`: an event and its incident are written in one transaction.
"""
