"""Questions of users to what is stored and to what runs, which change nothing.

Back-tests, replays and reports check a question against the database, and let a child process answer it, in a turn of
`webapp.rights.fair`; *Why?* asks the engine. Begin with `reports`, the smallest: `asking` reads the question, `views`
answers by HTTP.
"""
