"""What a browser gets by HTTP: the pages with their views, static files, and the middleware of all requests.

Begin with `views`, the map and the log-in. What programs ask for, too, lies with its room, such as
`webapp.layers.views`; `webapp.urls` lists all addresses. No other room imports this one.
"""
