"""What a process of the web application needs of its machine: logs, disks, secrets, child processes, files of tiles.

Nothing here knows the database or Redis, so the settings and the models may import these modules. Each stands alone.
"""
