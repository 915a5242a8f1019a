"""Teams: members, saved views, share links, and the page of a team."""
