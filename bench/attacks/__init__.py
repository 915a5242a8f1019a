"""Attacks on a running Lookout by users with ordinary rights, and what another user notices of them."""
