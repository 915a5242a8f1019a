"""The bus: what the web application sends through Redis to engines, the gateway and open connections.

No request waits for Redis: `telling` sends at once, or as soon as Redis answers again. `control` writes the control log
of an engine, `definitions` publishes spaces and streams, and `notify` tells connections by the channel layer, `groups`.
Begin with `redis`, the only module that makes clients of Redis; the names of keys and logs belong to `streaming.keys`.
"""
