"""Alarms: the rules that raise them, and the incidents that people work on until they are closed.

`incidents` has an action for each button; its function `changed` writes every change of an incident, and gives it to
`webapp.delivery`, which sends it. Begin there. Incidents are opened and closed by `webapp.recording`.
"""
